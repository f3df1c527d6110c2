/*
 * fuse_cases.h: the fusion cases: name, program, structure; see test_fuse.c.
 *
 * 17   one read, and both sums partial: neither has a loop of its own outside
 * 23   the padding is a guard of the window sum
 * 24   two long rows are three kernels whose sums are split, as two iterations
 *      would keep two threads busy; one short row runs on one thread
 * 28   the division after the last sum waits for all of it: a kernel of its own
 * 32   a row would have to read the whole weight while contractions are plain
 *      loops; likewise 43
 * 40   exp is computed twice: its two readers cut it at 1000 and at 1500
 */
	{"1",
		"x: f32[1024,1024]\n"
		"y: f32[1024,1024]\n"
		"o = add(x, y)\n"
		"return o\n",
		"1048576{add}"},
	{"2",
		"x: f32[1024,1024]\n"
		"y: f32[1024,1024]\n"
		"z: f32[1024,1024]\n"
		"a = add(x, y)\n"
		"o = add(a, z)\n"
		"return o\n",
		"1048576{add add}"},
	{"3",
		"x: f32[2,1024,1024]\n"
		"o = reduce_sum(x, axes=[0])\n"
		"return o\n",
		"1048576{reduce_sum0 r2{reduce_sum}}"},
	{"4",
		"x: f32[2,1024,1024]\n"
		"y: f32[2,1024,1024]\n"
		"t = add(x, y)\n"
		"out = reduce_sum(t, axes=[0])\n"
		"return out\n",
		"1048576{reduce_sum0 r2{add reduce_sum}}"},
	{"5",
		"x: f32[32,2048]\n"
		"y: f32[32,2048]\n"
		"t = add(x, y)\n"
		"o = reduce_sum(t, axes=[0])\n"
		"return o\n",
		"2048{reduce_sum0 r32{add reduce_sum}}"},
	{"6",
		"a: f32[4,16]\n"
		"b: f32[16]\n"
		"t = add(a, b)\n"
		"o = relu(t)\n"
		"return o\n",
		"4{16{add relu}}"},
	{"6 with work on the bias",
		"x: f32[1024,1024]\n"
		"b: f32[1024]\n"
		"r = relu(b)\n"
		"o = add(x, r)\n"
		"return o\n",
		"1024{1024{add}}"},
	{"7",
		"x: f32[64,128]\n"
		"y = exp(x)\n"
		"o = sub(y, x)\n"
		"return o\n",
		"8192{exp sub}"},
	{"8, 16",
		"x: f32[16,1]\n"
		"y: f32[16,1]\n"
		"t = exp(y)\n"
		"o = sub(x, t)\n"
		"return o\n",
		"16{exp sub}"},
	{"8, 17",
		"x: f32[17,1]\n"
		"y: f32[17,1]\n"
		"t = exp(y)\n"
		"o = sub(x, t)\n"
		"return o\n",
		"17{exp sub}"},
	{"8, 18",
		"x: f32[18,1]\n"
		"y: f32[18,1]\n"
		"t = exp(y)\n"
		"o = sub(x, t)\n"
		"return o\n",
		"18{exp sub}"},
	{"9",
		"x: f32[2,1024]\n"
		"y: f32[2,1024]\n"
		"a = add(x, y)\n"
		"b = relu(a)\n"
		"t = add(b, y)\n"
		"o = reduce_sum(t, axes=[0])\n"
		"return o\n",
		"1024{reduce_sum0 r2{add relu add reduce_sum}}"},
	{"10",
		"x: f32[64,16]\n"
		"y: f32[64,16]\n"
		"a = relu(x)\n"
		"b = relu(y)\n"
		"o = concat(a, b, axis=1)\n"
		"return o\n",
		"64{32{concat}}"},
	{"11",
		"x: f32[1024,1024]\n"
		"t = relu(x)\n"
		"s = reduce_sum(t, axes=[0], keep=1)\n"
		"o = sub(t, s)\n"
		"return o\n",
		"1024{reduce_sum0 r1024{relu reduce_sum} 1024{sub}}"},
	{"11, t returned",
		"x: f32[1024,1024]\n"
		"t = relu(x)\n"
		"s = reduce_sum(t, axes=[0], keep=1)\n"
		"o = sub(t, s)\n"
		"return o, t\n",
		"1024{reduce_sum0 r1024{relu reduce_sum} 1024{sub}}"},
	{"12",
		"x: f32[1024,1024]\n"
		"s = reduce_sum(x, axes=[0], keep=1)\n"
		"o = sub(x, s)\n"
		"return o\n",
		"1024{reduce_sum0 r1024{reduce_sum} 1024{sub}}"},
	{"13",
		"x: f32[4,4]\n"
		"t = relu(x)\n"
		"s = reduce_sum(t, axes=[1])\n"
		"o = sub(t, s)\n"
		"return o\n",
		"4{reduce_sum0 r4{relu reduce_sum} 4{sub}}"},
	{"14",
		"x: f32[1024,1024]\n"
		"y: f32[1024,1024]\n"
		"z: f32[1024,1024]\n"
		"t = relu(x)\n"
		"a = add(t, y)\n"
		"b = add(t, z)\n"
		"return a, b\n",
		"1048576{relu add add}"},
	{"15",
		"x: f32[1024,1024]\n"
		"t = relu(x)\n"
		"a = exp(t)\n"
		"b = abs(t)\n"
		"return a, b\n",
		"1048576{relu exp abs}"},
	{"16",
		"x: f32[1024,1024]\n"
		"t = relu(x)\n"
		"a = reduce_sum(t, axes=[0])\n"
		"b = reduce_max(t, axes=[0])\n"
		"return a, b\n",
		"1024{reduce_sum0 reduce_max0 r1024{relu reduce_sum "
		"reduce_max}}"},
	{"17",
		"x: f32[1024,1024]\n"
		"t = relu(x)\n"
		"a = reduce_sum(t, axes=[0])\n"
		"b = reduce_sum(t, axes=[1])\n"
		"return a, b\n",
		"1024{reduce_sum0} 1024{reduce_sum0} r1024{r1024{relu "
		"reduce_sum reduce_sum}}"},
	{"18",
		"x: f32[1024,1024]\n"
		"s = reduce_sum(x, axes=[1])\n"
		"o = relu(s)\n"
		"return o\n",
		"1024{reduce_sum0 r1024{reduce_sum} relu}"},
	{"19",
		"x: f32[1024,1]\n"
		"y = reshape(x, shape=[1,1024])\n"
		"r = relu(y)\n"
		"z = add(x, r)\n"
		"return z\n",
		"1024{1024{add}}"},
	{"19, the seed's example",
		"i: f32[1024,1]\n"
		"x = exp(i)\n"
		"y = reshape(x, shape=[1,1024])\n"
		"r = relu(y)\n"
		"z = add(x, r)\n"
		"return z\n",
		"1024{exp relu} | 1024{1024{add}} ! several several"},
	{"20",
		"x: f32[6,4]\n"
		"a = reshape(x, shape=[8,3])\n"
		"b = reshape(a, shape=[6,4])\n"
		"c = transpose(b, perm=[1,0])\n"
		"d = transpose(c, perm=[1,0])\n"
		"return d\n",
		" d=x"},
	{"20, an inner value",
		"x: f32[6,4]\n"
		"e = exp(x)\n"
		"a = reshape(e, shape=[8,3])\n"
		"return a, e\n",
		"24{exp} a=e"},
	{"21",
		"x: f32[2,3]\n"
		"y: f32[3,2]\n"
		"a = relu(x)\n"
		"r = reshape(a, shape=[3,2])\n"
		"o = add(r, y)\n"
		"return o\n",
		"6{relu add}"},
	{"21, a returned",
		"x: f32[2,3]\n"
		"y: f32[3,2]\n"
		"a = relu(x)\n"
		"r = reshape(a, shape=[3,2])\n"
		"o = add(r, y)\n"
		"return o, a\n",
		"6{relu add}"},
	{"22",
		"x: f32[1024,1024]\n"
		"a = slice(x, axes=[0], start=[1], count=[1023])\n"
		"b = slice(x, axes=[0], start=[0], count=[1023])\n"
		"o = sub(a, b)\n"
		"return o\n",
		"1047552{sub}"},
	{"23",
		"x: f32[1,1,1024,1024]\n"
		"p = pad(x, lo=[0,0,1,1], hi=[0,0,1,1])\n"
		"o = avg_pool(p, kernel=[3,3])\n"
		"return o\n",
		"1024{1024{s0 r3{r3{s}} o}}"},
	{"24",
		"x: f32[4096,512]\n"
		"o = softmax(x)\n"
		"return o\n",
		"4096{m0 r512{m} s0 r512{e s} 512{o}}"},
	{"24, two long rows",
		"x: f32[2,1000000]\n"
		"o = softmax(x)\n"
		"return o\n",
		"2{m0 r1000000{m}} | 2{s0 r1000000{e s}} | 2{1000000{o}} ! "
		"cost cycle cost"},
	{"24, one short row",
		"x: f32[1,512]\n"
		"o = softmax(x)\n"
		"return o\n",
		"m0 r512{m} s0 r512{e s} 512{o}"},
	{"25",
		"x: f32[4096,512]\n"
		"o = softmax(x, axis=0)\n"
		"return o\n",
		"512{m0 r4096{m} s0 r4096{e s} 4096{o}}"},
	{"26",
		"x: f32[4096,512]\n"
		"r: f32[4096,512]\n"
		"g: f32[512]\n"
		"b: f32[512]\n"
		"t = add(x, r)\n"
		"n = layer_norm(t, g, b)\n"
		"o = gelu(n)\n"
		"return o\n",
		"4096{s0 r512{add s} mu v0 r512{v} r 512{o gelu}}"},
	{"27",
		"x: f32[32,64,56,56]\n"
		"g: f32[64]\n"
		"b: f32[64]\n"
		"rm: f32[64]\n"
		"rv: f32[64]\n"
		"o, rm1, rv1 = batch_norm(x, g, b, rm, rv)\n"
		"return o, rm1, rv1\n",
		"64{s0 r32{r3136{s}} mu m20 r32{r3136{m2}} v r 32{3136{o}} rm' rv'}"},
	{"28",
		"x: f32[8192,8192]\n"
		"t: i64[8192]\n"
		"o = cross_entropy(x, t)\n"
		"return o\n",
		"z0 r8192{m0 r8192{m} s0 r8192{s} y l z} o"},
	{"29",
		"ids: i64[8,128]\n"
		"w: f32[50000,768]\n"
		"p: f32[128,768]\n"
		"g: f32[768]\n"
		"c: f32[768]\n"
		"e = embedding(ids, w)\n"
		"s = add(e, p)\n"
		"o = layer_norm(s, g, c)\n"
		"return o\n",
		"8{128{s0 r768{embedding add s} mu v0 r768{v} r 768{o}}}"},
	{"29b, layer norm backward",
		"x: f32[4096,512]\n"
		"d: f32[4096,512]\n"
		"g: f32[512]\n"
		"mu: f32[4096,1]\n"
		"r: f32[4096,1]\n"
		"c = sub(x, mu)\n"
		"h = mul(c, r)\n"
		"q = mul(d, g)\n"
		"a = reduce_mean(q, axes=[1], keep=1)\n"
		"z = mul(q, h)\n"
		"b = reduce_mean(z, axes=[1], keep=1)\n"
		"u = mul(h, b)\n"
		"v = sub(q, a)\n"
		"w = sub(v, u)\n"
		"dx = mul(w, r)\n"
		"y = mul(d, h)\n"
		"dg = reduce_sum(y, axes=[0])\n"
		"db = reduce_sum(d, axes=[0])\n"
		"return dx, dg, db\n",
		"512{reduce_sum0} 512{reduce_sum0} r4096{s0 s0 r512{sub "
		"mul mul s mul s mul reduce_sum reduce_sum} o 512{mul sub "
		"sub mul}}"},
	{"30",
		"x: f32[512,768]\n"
		"w: f32[768,3072]\n"
		"b: f32[3072]\n"
		"m = matmul(x, w)\n"
		"t = add(m, b)\n"
		"o = gelu(t)\n"
		"return o\n",
		"512{3072{matmul0 r768{matmul} add gelu}}"},
	{"31",
		"q: f32[2,12,1024,64]\n"
		"k: f32[2,12,1024,64]\n"
		"v: f32[2,12,1024,64]\n"
		"o = attention(q, k, v, causal=1, scale=0.125)\n"
		"return o\n",
		"24{1024{m0 r1024{s0 r64{s} a m} c z0 r1024{p z} 64{w0 "
		"r1024{w} o}}}"},
	{"32",
		"x: f32[2048,1024]\n"
		"g: f32[1024]\n"
		"w: f32[1024,1024]\n"
		"n = rms_norm(x, g)\n"
		"o = matmul(n, w)\n"
		"return o\n",
		"2048{s0 r1024{s} r 1024{o}} | 2048{1024{matmul0 "
		"r1024{matmul}}} ! cost"},
	{"33",
		"x: f32[1024,1024]\n"
		"d: f32[1024,1024]\n"
		"key: i64[]\n"
		"o = dropout(x, key, p=0.1)\n"
		"b = dropout(d, key, p=0.1)\n"
		"return o, b\n",
		"1048576{dropout} | 1048576{dropout}"},
	{"34",
		"lr: f32[]\n"
		"p: f32[512]\n"
		"g: f32[512]\n"
		"q: f32[64,64]\n"
		"h: f32[64,64]\n"
		"a = mul(g, lr)\n"
		"b = sub(p, a)\n"
		"c = mul(h, lr)\n"
		"d = sub(q, c)\n"
		"return b, d\n",
		"512{mul sub} batch0 | 4096{mul sub} batch0"},
	{"35",
		"x: f32[1024,1024]\n"
		"a = slice(x, axes=[1], start=[0], count=[512], step=[2])\n"
		"b = slice(x, axes=[1], start=[1], count=[512], step=[2])\n"
		"o = add(a, b)\n"
		"return o\n",
		"524288{add}"},
	{"36",
		"x: f32[1024,1024]\n"
		"f = flip(x, axes=[1])\n"
		"o = add(f, x)\n"
		"return o\n",
		"1024{1024{add}}"},
	{"37",
		"x: f32[10000,256]\n"
		"ids: i64[512]\n"
		"w: f32[256]\n"
		"y = take(x, ids)\n"
		"z = mul(y, w)\n"
		"o = reduce_sum(z, axes=[1])\n"
		"return o\n",
		"512{reduce_sum0 r256{take mul reduce_sum}}"},
	{"38",
		"x: f32[1024,1024]\n"
		"r = relu(x)\n"
		"o = cumsum(r, axis=1)\n"
		"return o\n",
		"1024{s1024{relu cumsum}}"},
	{"39",
		"x: f32[1024,1024]\n"
		"r: f32[1024,1]\n"
		"e = exp(x)\n"
		"t = add(e, r)\n"
		"s = reduce_sum(t, axes=[1])\n"
		"q = transpose(t, perm=[1,0])\n"
		"o = add(t, q)\n"
		"return o, s\n",
		"1024{reduce_sum0 r1024{exp add reduce_sum}} | "
		"1024{1024{add}} ! several"},
	{"40",
		"x: f32[24,1000]\n"
		"t = exp(x)\n"
		"a = reshape(t, shape=[16,1500])\n"
		"b = reduce_sum(a, axes=[1])\n"
		"s = reduce_sum(t, axes=[1])\n"
		"return b, s\n",
		"8{2{reduce_sum0 r1500{exp reduce_sum}} 3{reduce_sum0 "
		"r1000{reduce_sum}}}"},
	{"41",
		"x: f32[1024,1024]\n"
		"c = cumsum(x, axis=1)\n"
		"m = reduce_max(c, axes=[1], keep=1)\n"
		"o = sub(c, m)\n"
		"return o\n",
		"1024{reduce_max0 s1024{cumsum reduce_max} 1024{sub}}"},
	{"43",
		"x: f32[512,1024]\n"
		"v: f32[1024,4096]\n"
		"w: f32[4096,1024]\n"
		"h = matmul(x, v)\n"
		"a = gelu(h)\n"
		"o = matmul(a, w)\n"
		"return o\n",
		"512{4096{matmul0 r1024{matmul} gelu}} | 512{1024{matmul0 "
		"r4096{matmul}}} ! cost"},
	{"a scan turned round",
		"x: f32[1024,1024]\n"
		"c = cumsum(x, axis=1)\n"
		"r = cumsum_reverse(c, axis=1)\n"
		"return r\n",
		"1024{s1024{cumsum} s1024{cumsum_reverse}}"},
	{"a halo",
		"x: f32[1024,1024]\n"
		"t = exp(x)\n"
		"a = slice(t, axes=[1], start=[1], count=[1023])\n"
		"b = slice(t, axes=[1], start=[0], count=[1023])\n"
		"o = sub(a, b)\n"
		"return o\n",
		"1024{1024{exp} 1023{sub}}"},
	{"an opaque row",
		"x: f32[64]\n"
		"y = neg(x)\n"
		"a, b = sort(y)\n"
		"z = exp(a)\n"
		"return z, b\n",
		"64{neg} | opaque sort | 64{exp} ! opaque opaque"},
	{"a scatter",
		"x: f32[100,64]\n"
		"ids: i64[32]\n"
		"u: f32[32,64]\n"
		"e = exp(u)\n"
		"o = scatter_add(x, ids, e)\n"
		"r = relu(o)\n"
		"return r\n",
		"64{100{o0} r32{o} 100{relu}}"},
	{"two kinds of index",
		"x: f32[1024,1024]\n"
		"k: f32[1024]\n"
		"i = argmax(x, axis=1)\n"
		"o = take(k, i)\n"
		"return o\n",
		"1024{argmax0 r1024{argmax} take}"},
	{"an opaque row sees the shape",
		"x: f32[64]\n"
		"y = reshape(x, shape=[8,8])\n"
		"a, b = sort(y)\n"
		"return a, b\n",
		"64{copy} | opaque sort ! opaque"},
	{"an opaque row of what is as it was",
		"x: f32[64]\n"
		"y = reshape(x, shape=[8,8])\n"
		"z = reshape(y, shape=[64])\n"
		"a, b = sort(z)\n"
		"return a, b\n",
		" opaque sort"},
