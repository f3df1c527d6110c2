/* opaque_bit_cast.h: bit_cast(1.0, dtype=u32) = 0x3f800000 */
static size_t room_bit_cast(const row_call *j)
{
	(void)j;
	return 0;
}

static void run_bit_cast(const row_call *j)
{
	const row_type *t = &j->in_type[0];
	row_dtype to = j->out_type[0].dtype;
	int64_t n = row_count(t, 0, t->rank);
	int64_t n_in = (int64_t)row_size(t->dtype), n_out = (int64_t)row_size(to);

	for (int64_t i = 0; i < n; i++) {
		unsigned char *o = (unsigned char *)j->out[0] + i * n_out;
		uint64_t bits = 0;

		/* the machine is little-endian, as files are */
		memcpy(&bits, (const char *)j->in[0] + i * n_in,
			(size_t)(n_in < n_out ? n_in : n_out));
		if (row_is_bool(to))
			*o = bits != 0;
		else if (row_bits(to) < 8 && !row_is_float(to))
			row_store_i64(to, o, 0, (int64_t)bits);
		else if (row_bits(to) < 8)
			*o = (unsigned char)(bits &
				((UINT64_C(1) << row_bits(to)) - 1));
		else
			memcpy(o, &bits, (size_t)n_out);
	}
}
