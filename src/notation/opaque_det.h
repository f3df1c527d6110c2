/* opaque_det.h: det([[1, 2], [3, 4]]) = -2 */

static double row_magnitude(double v)
{
	return v < 0 ? -v : v;
}

/* Gaussian elimination with partial pivoting; overwrites m (n, n). */
static double row_determinant(double *m, int64_t n)
{
	double det = 1;

	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;

		for (int64_t i = k + 1; i < n; i++)
			if (row_magnitude(m[i * n + k]) >
				row_magnitude(m[best * n + k]))
				best = i;
		if (best != k)
			det = -det;
		for (int64_t j = k; j < n && best != k; j++) {
			double t = m[k * n + j];

			m[k * n + j] = m[best * n + j];
			m[best * n + j] = t;
		}
		det *= m[k * n + k];
		if (m[k * n + k] == 0)
			return 0;
		for (int64_t i = k + 1; i < n; i++) {
			double f = m[i * n + k] / m[k * n + k];

			for (int64_t j = k + 1; j < n; j++)
				m[i * n + j] -= f * m[k * n + j];
		}
	}
	return det;
}

static size_t room_det(const row_call *j)
{
	size_t n = (size_t)j->in_type[0].shape[j->in_type[0].rank - 1];

	return n * n * sizeof(double);
}

static void run_det(const row_call *j)
{
	const row_type *t = &j->in_type[0];
	int64_t n = t->shape[t->rank - 1];
	int64_t n_out = row_count(&j->out_type[0], 0, j->out_type[0].rank);
	double *m = (double *)(void *)j->room;

	for (int64_t i = 0; i < n_out; i++) {
		for (int64_t k = 0; k < n * n; k++)
			m[k] = row_load_f64(t->dtype, j->in[0],
				i * n * n + k);
		row_store_f64(j->out_type[0].dtype, j->out[0], i,
			row_determinant(m, n));
	}
}
