/*
 * onnx/: models written by onnx_writer.h are read, built and run by the
 * interpreter.
 */
#include "onnx_run.h"

#include <math.h>

static const run_case runs[] = {
	/* elementwise, opsets, broadcasting */
	{"opset 13; in x float [3]; init w float [3] 1 2 3; out y;"
	 "node Add x w > y;", {"float [3] 10 20 30"}, "float [3] 11 22 33"},
	{"opset 6; in x float [2,3]; in w float [2]; out y;"
	 "node Add x w > y : broadcast=1 axis=0;",
		{"float [2,3] 1 2 3 4 5 6", "float [2] 10 20"},
		"float [2,3] 11 12 13 24 25 26"},
	{"opset 6; in x float [3]; out y; node Clip x > y : min=0.5 max=2.5;",
		{"float [3] 0 1 3"}, "float [3] 0.5 1 2.5"},
	{"opset 13; in x int32 [3]; init lo int32 [] 1; out y;"
	 "node Clip x lo _ > y;", {"int32 [3] 0 1 3"}, "int32 [3] 1 1 3"},
	{"opset 9; in x float [2]; out y; node LeakyRelu x > y : alpha=0.5;",
		{"float [2] -2 2"}, "float [2] -1 2"},
	{"opset 9; in x float [2]; out y; node LeakyRelu x > y;",
		{"float [2] -100 2"}, "float [2] -1 2"},
	{"opset 13; in x float [2]; in z float [2]; in w float [2]; out y;"
	 "node Mean x z w > y;", {"float [2] 1 2", "float [2] 2 4",
		 "float [2] 3 9"}, "float [2] 2 5"},
	{"opset 11; in x uint16 [2]; init s uint16 [] 12; out y;"
	 "node BitShift x s > y : direction=\"LEFT\";", {"uint16 [2] 1 17"},
		"uint16 [2] 4096 4096"},
	{"opset 11; in x int8 [4]; in s int8 [4]; out y;"
	 "node BitShift x s > y : direction=\"RIGHT\";",
		{"int8 [4] -8 -8 64 -1", "int8 [4] 8 -1 100 2"},
		"int8 [4] -1 -1 0 -1"},
	{"opset 11; in x int8 [3]; in s int8 [3]; out y;"
	 "node BitShift x s > y : direction=\"LEFT\";",
		{"int8 [3] -8 1 65", "int8 [3] 8 -1 1"}, "int8 [3] 0 0 -126"},
	{"opset 28; in x float [1,2,1,2]; out y;"
	 "node SpaceToDepth x > y : blocksize=1 mode=\"CRD\";",
		{"float [1,2,1,2] 1 2 3 4"}, "float [1,2,1,2] 1 2 3 4"},
	{"opset 28; in x float [1,2,2,2]; out y;"
	 "node SpaceToDepth x > y : blocksize=2 mode=\"CRD\";",
		{"float [1,2,2,2] 1 2 3 4 5 6 7 8"},
		"float [1,8,1,1] 1 2 3 4 5 6 7 8"},
	{"opset 28; in x float [1,2,2,2]; out y;"
	 "node SpaceToDepth x > y : blocksize=2 mode=\"DCR\";",
		{"float [1,2,2,2] 1 2 3 4 5 6 7 8"},
		"float [1,8,1,1] 1 5 2 6 3 7 4 8"},
	{"opset 28; in x float [1,2,2,2]; out y;"
	 "node SpaceToDepth x > y : blocksize=2 mode=\"RCD\";",
		{"float [1,2,2,2] 1 2 3 4 5 6 7 8"}, "!onnx.attr"},
	/* peepholes without an axis for the gates */
	{"opset 14; in x float [1,1,1]; init w float [1,4,1] 1 1 1 1; out y;"
	 "init p float [1] 1; node LSTM x w w _ _ _ _ p > y : hidden_size=1;",
		{"float [1,1,1] 1"}, "!onnx.shape"},
	{"opset 26; in x float [2]; out y; node BitCast x > y : to=6;",
		{"float [2] 1 -2"}, "int32 [2] 1065353216 -1073741824"},
	{"opset 26; in x int16 [2]; out y; node BitCast x > y : to=4;",
		{"int16 [2] 1 -2"}, "uint16 [2] 1 65534"},
	{"opset 26; in x uint16 [2]; out y; node BitCast x > y : to=10;",
		{"uint16 [2] 15360 49152"}, "float16 [2] 1 -2"},
	{"opset 26; in x float [2]; out y; node BitCast x > y : to=12;",
		{"float [2] 1 -2"}, "uint32 [2] 1065353216 3221225472"},
	{"opset 26; in x float [2]; out y; node BitCast x > y : to=7;",
		{"float [2] 1 -2"}, "!onnx.attr"},
	{"opset 26; in x float [2]; out y; node BitCast x > y : to=8;",
		{"float [2] 1 -2"}, "!onnx.elem"},
	{"opset 13; in x int32 [2]; in p float [2]; out y; node Pow x p > y;",
		{"int32 [2] 2 9", "float [2] 3 0.5"}, "int32 [2] 8 3"},
	/* known whole exponents: of all elements, of another shape, of a narrow type */
	{"opset 13; in x float [4]; init p float [] 3; out y; node Pow x p > y;",
		{"float [4] 2 -3 0.5 -0"}, "float [4] 8 -27 0.125 -0"},
	{"opset 13; in x double [2]; init p int64 [1] 2; out y; node Pow x p > y;",
		{"double [2] 3 -4"}, "double [2] 9 16"},
	{"opset 13; in x float [2]; init p float [1,1] 2; out y; node Pow x p > y;",
		{"float [2] 3 -4"}, "float [1,2] 9 16"},
	{"opset 13; in x float [2]; init p float [2] 3 2; out y; node Pow x p > y;",
		{"float [2] 2 -4"}, "float [2] 8 16"},
	{"opset 13; in x float16 [2]; init p float16 [] 3; out y; node Pow x p > y;",
		{"float16 [2] 1.001 2"}, "float16 [2] 1.00293 8"},
	/* shapes are computed while importing */
	{"opset 13; in x float [2,3]; out y; node Shape x > s;"
	 "init one int64 [1] -1; node Reshape x one > y;",
		{"float [2,3] 1 2 3 4 5 6"}, "float [6] 1 2 3 4 5 6"},
	{"opset 13; in x float [4]; in s int64 [2]; out y;"
	 "node Reshape x s > y;", {"float [4] 1 2 3 4", "int64 [2] 3 -1"},
		"!onnx.shape"},
	{"opset 13; in x float [4]; in s int64 [2]; out y;"
	 "node Reshape x s > y;", {"float [4] 1 2 3 4", "int64 [2] 2 -1"},
		"float [2,2] 1 2 3 4"},
	{"opset 13; in x float [3,4]; out y; node Shape x > s;"
	 "init i int64 [] 1; node Gather s i > n; init o int64 [1] 1;"
	 "init z int64 [1] 0; node Unsqueeze n z > m; node Concat o m > t : axis=0;"
	 "node ConstantOfShape t > y;", {"float [3,4] *"}, "float [1,4] 0 0 0 0"},
	{"opset 9; in x float [5]; out y;"
	 "node Slice x > y : starts=[1] ends=[-1] axes=[0];",
		{"float [5] 0 1 2 3 4"}, "float [3] 1 2 3"},
	{"opset 13; in x float [5]; init f int64 [1] -1; init t int64 [1] -99;"
	 "init a int64 [1] 0; init s int64 [1] -2; out y;"
	 "node Slice x f t a s > y;", {"float [5] 0 1 2 3 4"},
		"float [3] 4 2 0"},
	{"opset 13; in x float [3]; out z; node Split x > y z : axis=0;"
	 "init n int64 [2] 1 2;", {"float [3] 1 2 3"}, "float [1] 3"},
	/* data decides the shape */
	{"opset 13; in x float [4]; out y; node NonZero x > y;",
		{"float [4] 0 5 0 6"}, "int64 [1,2] 1 3"},
	{"opset 13; in x float [3]; in c bool [3]; out y;"
	 "node Compress x c > y;", {"float [3] 1 2 3", "bool [3] 1 0 1"},
		"float [2] 1 3"},
	/* indices */
	{"opset 13; in x float [3]; init i int64 [2] -1 0; out y;"
	 "node Gather x i > y;", {"float [3] 1 2 3"}, "float [2] 3 1"},
	{"opset 13; in x float [3]; in i int64 [2]; out y;"
	 "node Gather x i > y;", {"float [3] 1 2 3", "int64 [2] -1 0"},
		"float [2] 3 1"},
	{"opset 16; in x float [3]; init i int64 [2] 1 1; in u float [2]; out y;"
	 "node ScatterElements x i u > y : reduction=\"add\";",
		{"float [3] 1 2 3", "float [2] 10 20"}, "float [3] 1 32 3"},
	{"opset 13; in x float [3]; init k int64 [1] 2; out y z;"
	 "node TopK x k > y z; out z;", {"float [3] 1 3 2"}, "float [2] 3 2"},
	/* matrices, windows, normalisation */
	{"opset 13; in x float [1,2]; init w float [1,2] 3 4; init c float [1] 1;"
	 "out y; node Gemm x w c > y : transB=1 alpha=2.0;",
		{"float [1,2] 1 1"}, "float [1,1] 15"},
	{"opset 13; in x float [2]; in w float [2]; out y; node MatMul x w > y;",
		{"float [2] 1 2", "float [2] 3 4"}, "float [] 11"},
	{"opset 11; in x float [1,1,3]; init w float [1,1,2] 1 1; out y;"
	 "node Conv x w > y : auto_pad=\"SAME_UPPER\";",
		{"float [1,1,3] 1 2 3"}, "float [1,1,3] 3 5 3"},
	{"opset 11; in x float [1,1,4]; out y;"
	 "node MaxPool x > y : kernel_shape=[3] strides=[2] ceil_mode=1;",
		{"float [1,1,4] 1 2 3 9"}, "float [1,1,2] 3 9"},
	{"opset 12; in x float [1,2,2]; out y; node Softmax x > y : axis=1;",
		{"float [1,2,2] 1 1 1 1"}, "float [1,2,2] .25 .25 .25 .25"},
	{"opset 13; in x float [1,2,2]; out y; node Softmax x > y : axis=1;",
		{"float [1,2,2] 1 1 1 1"}, "float [1,2,2] .5 .5 .5 .5"},
	{"opset 13; in x float [2]; init s float [] 0.5; init z uint8 [] 3; out y;"
	 "node QuantizeLinear x s z > y;", {"float [2] 1 1000"},
		"uint8 [2] 5 255"},
	{"opset 13; in x float [1,1,3,3]; in r float [1,5]; out y;"
	 "node MaxRoiPool x r > y : pooled_shape=[2,2] spatial_scale=0.5;",
		{"float [1,1,3,3] 1 2 3 4 5 6 7 8 9", "float [1,5] 0 2 0 4 4"},
		"float [1,1,2,2] 5 6 8 9"},
	/* half of a spectrum in, a real signal out, of even and odd length */
	{"opset 20; in x float [1,3,2]; out y;"
	 "node DFT x > y : inverse=1 onesided=1;",
		{"float [1,3,2] 10 0 -2 2 -2 0"}, "float [1,4,1] 1 2 3 4"},
	{"opset 20; in x float [1,2,2]; init n int64 [] 3; out y;"
	 "node DFT x n > y : inverse=1 onesided=1;",
		{"float [1,2,2] 6 0 0 3.46410162"}, "float [1,3,1] 2 0 4"},
	{"opset 17; in x float [1,3,2]; init n int64 [] 2; out y;"
	 "node DFT x n > y : inverse=1 onesided=1;",
		{"float [1,3,2] 6 0 2 0 9 9"}, "float [1,2,1] 4 2"},
	{"opset 20; in x float [1,1,2]; out y;"
	 "node DFT x > y : inverse=1 onesided=1;", {"float [1,1,2] 6 0"},
		"!onnx.attr"},
	{"opset 20; in x float [1,2,3]; out y; node DFT x > y;",
		{"float [1,2,3] 6 0 1 2 3 4"}, "!onnx.attr"},
	{"opset 20; in x float [1,2,1]; out y; node DFT x > y;",
		{"float [1,2,1] 3 1"}, "float [1,2,2] 4 0 2 0"},
	{"opset 21; in x float [2]; init s float [] 0.5; out y;"
	 "node QuantizeLinear x s > y : output_dtype=3;", {"float [2] 1 -90"},
		"int8 [2] 2 -128"},
	/* unsigned types that are held in wider ones: as they would be */
	{"opset 18; in x uint16 [3]; out y; node BitwiseNot x > y;",
		{"uint16 [3] 0 1 65535"}, "uint16 [3] 65535 65534 0"},
	{"opset 18; in x uint32 [2]; out y; node BitwiseNot x > y;",
		{"uint32 [2] 0 4294967295"}, "uint32 [2] 4294967295 0"},
	{"opset 13; in x uint16 [2]; in z uint16 [2]; out y; node Less x z > y;",
		{"uint16 [2] 1 40000", "uint16 [2] 40000 1"}, "bool [2] 1 0"},
	{"opset 13; in x uint32 [2]; in z uint32 [2]; out y;"
	 "node Equal x z > y;", {"uint32 [2] 1 4", "uint32 [2] 4 4"},
		"bool [2] 0 1"},
	{"opset 13; in x uint32 [2]; in z uint32 [2]; out y; node Sum x z > y;",
		{"uint32 [2] 1 4294967295", "uint32 [2] 4 4"},
		"uint32 [2] 5 3"},
	{"opset 13; in x uint16 [2]; init a int64 [1] 0; out y;"
	 "node ReduceSum x a > y : keepdims=0;", {"uint16 [2] 65535 3"},
		"uint16 [] 2"},
	{"opset 13; in x uint32 [2]; out y; node ArgMax x > y;",
		{"uint32 [2] 1 4"}, "int64 [1] 1"},
	{"opset 13; in x int64 [1]; in p uint32 [1]; out y; node Pow x p > y;",
		{"int64 [1] -70000", "uint32 [1] 1"}, "int64 [1] -70000"},
	/* quantised: the type's ends, computed in f32 at least, blocks */
	{"opset 21; in x float [3]; init s float [] 0.5; init z uint16 [] 3;"
	 "out y; node QuantizeLinear x s z > y;", {"float [3] 1 -9 40000"},
		"uint16 [3] 5 0 65535"},
	{"opset 21; in x float [2]; init s float [] 0.5; out y;"
	 "node QuantizeLinear x s > y : output_dtype=4;", {"float [2] 2 1000000"},
		"uint16 [2] 4 65535"},
	{"opset 21; in x float16 [2]; init s float16 [] 0.25; init z int16 [] -3;"
	 "out y; node QuantizeLinear x s z > y;", {"float16 [2] 1001 1002"},
		"int16 [2] 4001 4005"},
	{"opset 21; in x uint16 [2]; init s float16 [] 0.0625; init z uint16 [] 7;"
	 "out y; node DequantizeLinear x s z > y;", {"uint16 [2] 4096 4103"},
		"float16 [2] 255.5 256"},
	{"opset 21; in x float [1]; init s float [] 1; init z int32 [] 0; out y;"
	 "node QuantizeLinear x s z > y;", {"float [1] 3000000000"},
		"int32 [1] 2147483647"},
	{"opset 21; in x int8 [1,5]; init s float [1,3] 1 2 3; out y;"
	 "node DequantizeLinear x s > y : axis=1 block_size=2;",
		{"int8 [1,5] 1 1 1 1 1"}, "float [1,5] 1 1 2 2 3"},
	{"opset 21; in x float [1,5]; init s float [1,3] 1 2 4;"
	 "init z uint8 [1,3] 0 1 2; out y;"
	 "node QuantizeLinear x s z > y : axis=1 block_size=2;",
		{"float [1,5] 8 8 8 8 8"}, "uint8 [1,5] 8 8 5 5 4"},
	/* nothing is reduced, but each element is what one of them becomes */
	{"opset 18; in x float [2]; init a int64 [0] ; out y;"
	 "node ReduceL1 x a > y : noop_with_empty_axes=1;",
		{"float [2] -3 2"}, "float [2] 3 2"},
	{"opset 18; in x float [2]; init a int64 [0] ; out y;"
	 "node ReduceL2 x a > y : noop_with_empty_axes=1;",
		{"float [2] -3 2"}, "float [2] 3 2"},
	{"opset 18; in x float [2]; init a int64 [0] ; out y;"
	 "node ReduceSumSquare x a > y : noop_with_empty_axes=1;",
		{"float [2] -3 2"}, "float [2] 9 4"},
	{"opset 18; in x float [2]; init a int64 [0] ; out y;"
	 "node ReduceLogSum x a > y : noop_with_empty_axes=1;",
		{"float [2] 1 2.718281828"}, "float [2] 0 1"},
	{"opset 18; in x float [2]; out y;"
	 "node ReduceMean x > y : noop_with_empty_axes=1;",
		{"float [2] -3 2"}, "float [2] -3 2"},
	{"opset 20; in x bool [2,2]; init a int64 [1] 1; out y;"
	 "node ReduceMax x a > y : keepdims=0;", {"bool [2,2] 0 0 1 0"},
		"bool [2] 0 1"},
	{"opset 20; in x bool [2,2]; init a int64 [1] 1; out y;"
	 "node ReduceMin x a > y : keepdims=0;", {"bool [2,2] 0 1 1 1"},
		"bool [2] 0 1"},
	{"opset 18; in x int32 [2,2]; init a int64 [1] 1; out y;"
	 "node ReduceL2 x a > y : keepdims=0;", {"int32 [2,2] 3 4 1 1"},
		"int32 [2] 5 1"},
	{"opset 22; in x float [2,2]; out y; node LpNormalization x > y;",
		{"float [2,2] 3 4 0 0"}, "float [2,2] 0.6 0.8 0 0"},
	/* 1 + 1/4 of the 5 elements are 6, not 6.25: half of what is lost is in
	 * front */
	{"opset 19; in x float [5]; init s float [1] 1.25; out y;"
	 "node Resize x _ s > y : mode=\"linear\""
	 "coordinate_transformation_mode=\"half_pixel_symmetric\";",
		{"float [5] 0 1 2 3 4"}, "float [6] 0 0.8 1.6 2.4 3.2 4"},
	{"opset 17; in x float16 [1,2]; init s float [2] 2 4; out y;"
	 "node LayerNormalization x s > y;", {"float16 [1,2] 300 302"},
		"float16 [1,2] -2 4"},
	{"opset 17; in x float16 [1,2]; init s float16 [2] 1 1; out m;"
	 "node LayerNormalization x s > y m;", {"float16 [1,2] 300 302"},
		"float [1,1] 301"},
	{"opset 13; in b float [1,3,4]; in s float [1,1,3];"
	 "init k int64 [1] 9223372036854775807; init i float [1] 0.5; out y;"
	 "node NonMaxSuppression b s k i > y;",
		{"float [1,3,4] 0 0 1 1 0 0 1 1 5 5 6 6",
			"float [1,1,3] 0.5 0.75 0.25"},
		"int64 [2,3] 0 0 1 0 0 2"},
	/* a box of 4 by 2 pixels in one cell: the mean of 4 times 2 samples */
	{"opset 16; in x float [1,1,2,4]; init r float [1,4] 0 0 4 2;"
	 "init n int64 [1] 0; out y; node RoiAlign x r n > y;",
		{"float [1,1,2,4] 1 2 3 4 5 6 7 8"}, "float [1,1,1,1] 4.5"},
	/* the boxes are data; the second has fewer samples than the first */
	{"opset 16; in x float [1,1,2,4]; in r float [2,4];"
	 "init n int64 [2] 0 0; out y; node RoiAlign x r n > y : mode=\"max\";",
		{"float [1,1,2,4] 1 2 3 4 5 6 7 -8",
			"float [2,4] 0 0 4 2 0 0 1 1"},
		"float [2,1,1,1] 7 1"},
	{"opset 14; in x float [1,1,1]; init w float [1,1,1] 1;"
	 "init r float [1,1,1] 1; out y; node RNN x w r > y : hidden_size=1 "
	 "activations=[\"scaledTANH\"] activation_alpha=[2.0] "
	 "activation_beta=[1000.0];", {"float [1,1,1] 1"},
		"float [1,1,1,1] 2"},
	/* nodes in any order: in graphs, in what reads from outside */
	{"opset 13; in x float [1]; out y; node Neg b > y; node Add a x > b;"
	 "node Abs x > a;", {"float [1] -3"}, "float [1] 0"},
	{"opset 13; in x float [1]; init c bool [] 1; out y; node If c > y :"
	 "then_branch={ node Neg u > t; node Add k k > u; out t; }"
	 "else_branch={ node Abs x > t; out t; }; node Abs x > k;",
		{"float [1] -3"}, "float [1] -6"},
	{"opset 13; in x float [1]; init c bool [] 1; out y; node If c > y :"
	 "then_branch={ out k; } else_branch={ out x; }; node Abs x > k;",
		{"float [1] -3"}, "float [1] 3"},
	/* a name of a branch is not the one outside */
	{"opset 13; in x float [1]; init c bool [] 1; out y; node If c > t :"
	 "then_branch={ node Neg x > y; out y; }"
	 "else_branch={ node Abs x > y; out y; }; node Abs t > y;",
		{"float [1] 3"}, "float [1] 3"},
	/* control: chosen and unrolled while importing */
	{"opset 13; in c bool []; in x float [1]; out y; node If c > y :"
	 "then_branch={ node Neg x > t; out t; }"
	 "else_branch={ node Identity x > t; out t; };",
		{"bool [] 1", "float [1] 3"}, "float [1] -3"},
	{"opset 13; in x float [1]; init n int64 [] 3; out y; node Loop n _ x > y :"
	 "body={ in i int64 []; in c bool []; in v float [1]; out c; out o;"
	 "node Add v v > o; };", {"float [1] 1"}, "float [1] 8"},
	{"opset 13; in x float [3,1]; init s float [1] 0; out y z;"
	 "node Scan s x > y z : num_scan_inputs=1 body={ in s float [1];"
	 "in v float [1]; out t; out u; node Add s v > t; node Identity t > u; };",
		{"float [3,1] 1 2 3"}, "float [1] 6"},
	{"opset 13; in x float [2]; in z float [2]; init i int64 [] -1; out y;"
	 "node SequenceConstruct x z > s; node SequenceAt s i > y;",
		{"float [2] 1 2", "float [2] 3 4"}, "float [2] 3 4"},
	{"opset 13; in x float [1]; in z float [1]; init i int64 [] 0; out y;"
	 "node SequenceEmpty > e; node SequenceInsert e x > s;"
	 "node SequenceInsert s z i > t; node ConcatFromSequence t > y : axis=0;",
		{"float [1] 1", "float [1] 2"}, "float [2] 2 1"},
	/* derivatives: of x * x + 3 x at 2, and of a value that x is not in */
	{"opset 13; opset 1 ai.onnx.preview.training; in x float [1];"
	 "init t float [1] 3; out g; node Mul x x > a; node Mul x t > b;"
	 "node Add a b > y; node ai.onnx.preview.training/Gradient x > g :"
	 "xs=[\"x\"] y=\"y\";", {"float [1] 2"}, "float [1] 7"},
	{"opset 13; opset 1 ai.onnx.preview.training; in x float [2];"
	 "init t float [2] 3 4; out g; node Neg t > y;"
	 "node ai.onnx.preview.training/Gradient x > g : xs=[\"x\"] y=\"y\";",
		{"float [2] 2 3"}, "float [2] 0 0"},
	/* element types, raw and typed */
	{"opset 13; typed w float16 [2] 1.5 -2; out y; node Cast w > y : to=1;",
		{NULL}, "float [2] 1.5 -2"},
	{"opset 13; init w bfloat16 [2] 1.5 -2; out y; node Cast w > y : to=11;",
		{NULL}, "double [2] 1.5 -2"},
	{"opset 13; typed w double [2] 1.5 -2; out y; node Identity w > y;",
		{NULL}, "double [2] 1.5 -2"},
	{"opset 13; typed w int8 [2] 1 -2; out y; node Identity w > y;",
		{NULL}, "int8 [2] 1 -2"},
	{"opset 13; typed w uint64 [2] 1 7; out y; node Identity w > y;",
		{NULL}, "uint64 [2] 1 7"},
	{"opset 13; init w uint32 [2] 1 4000000000; out y; node Identity w > y;",
		{NULL}, "uint32 [2] 1 4000000000"},
	/* above 2^63: unsigned in all that is done to it */
	{"opset 13; init w uint64 [2] 18446744073709549568 3; out y;"
	 "init k uint64 [] 2048; node Div w k > y;",
		{NULL}, "uint64 [2] 9007199254740991 0"},
	{"opset 13; init w uint64 [2] 18446744073709549568 3; out y;"
	 "node Cast w > y : to=11;", {NULL}, "double [2] 18446744073709549568 3"},
	{"opset 13; init w uint64 [2] 18446744073709549568 3; in x uint64 [2];"
	 "out y; node Greater w x > y;", {"uint64 [2] 5 5"}, "bool [2] 1 0"},
	{"opset 13; init w uint64 [3] 18446744073709549568 3 9223372036854775808;"
	 "out y; node ReduceMax w > y : keepdims=0;", {NULL},
		"uint64 [] 18446744073709549568"},
	/* elements of fewer bits than a byte, an odd number of them */
	{"opset 21; init w int4 [3] 1 -2 -8; out y; node Cast w > y : to=6;",
		{NULL}, "int32 [3] 1 -2 -8"},
	{"opset 21; typed w int4 [3] 1 -2 -8; out y; node Cast w > y : to=6;",
		{NULL}, "int32 [3] 1 -2 -8"},
	{"opset 21; init w uint4 [5] 1 15 8 7 9; out y; node Cast w > y : to=6;",
		{NULL}, "int32 [5] 1 15 8 7 9"},
	{"opset 25; typed w int2 [5] 1 -2 -1 0 1; out y; node Cast w > y : to=6;",
		{NULL}, "int32 [5] 1 -2 -1 0 1"},
	{"opset 25; init w uint2 [5] 1 2 3 0 1; out y; node Cast w > y : to=6;",
		{NULL}, "int32 [5] 1 2 3 0 1"},
	{"opset 23; init w float4e2m1 [3] 0.5 -6 3; out y; node Cast w > y : to=1;",
		{NULL}, "float [3] 0.5 -6 3"},
	{"opset 21; in x int4 [2,3]; out y; node Transpose x > y;",
		{"int4 [2,3] 1 -2 3 -4 5 -6"}, "int4 [3,2] 1 -4 -2 5 3 -6"},
	{"opset 21; in x float [4]; init s float [] 0.5; init z int4 [] 1; out y;"
	 "node QuantizeLinear x s z > y;", {"float [4] 0.5 -0.5 9 -9"},
		"int4 [4] 2 0 7 -8"},
	{"opset 21; in x uint4 [3]; init s float [] 0.5; init z uint4 [] 8; out y;"
	 "node DequantizeLinear x s z > y;", {"uint4 [3] 0 8 15"},
		"float [3] -4 0 3.5"},
	/* floats of a byte: what is too large */
	{"opset 19; in x float [4]; out y; node Cast x > y : to=17;",
		{"float [4] 500 -1e9 464 0.3"}, "float8e4m3fn [4] 448 -448 448 0.3125"},
	{"opset 19; in x float [4]; out y; node Cast x > w : to=17 saturate=0;"
	 "node Cast w > v : to=1; node IsNaN v > y;",
		{"float [4] 464 464.1 -465 448"}, "bool [4] 0 1 1 0"},
	{"opset 19; in x float [3]; out y; node Cast x > w : to=19 saturate=0;"
	 "node Cast w > v : to=1; node IsInf v > y : detect_negative=0;",
		{"float [3] 61440 -70000 61439"}, "bool [3] 1 0 0"},
	{"opset 19; in x float16 [2]; out y; node Cast x > w : to=20 saturate=0;"
	 "node Cast w > v : to=1; node IsNaN v > y;",
		{"float16 [2] 61440 57344"}, "bool [2] 1 0"},
	{"opset 24; in x float [4]; out y; node Cast x > y : to=24;",
		{"float [4] 1.1 -3 0 8"}, "float8e8m0 [4] 2 4 5.877471754e-39 8"},
	{"opset 24; in x float [4]; out y;"
	 "node Cast x > y : to=24 round_mode=\"down\";",
		{"float [4] 1.9 3 0.7 8"}, "float8e8m0 [4] 1 2 0.5 8"},
	{"opset 24; in x float [4]; out y;"
	 "node Cast x > y : to=24 round_mode=\"nearest\";",
		{"float [4] 1.4 1.5 0.7 11"}, "float8e8m0 [4] 1 2 0.5 8"},
	{"opset 24; in x float [1]; out y;"
	 "node Cast x > y : to=24 round_mode=\"odd\";", {"float [1] 1"},
		"!onnx.attr"},
	{"opset 19; in x float [3]; init s float [] 2; init z float8e5m2 [] 0;"
	 "out y; node QuantizeLinear x s z > y;", {"float [3] 3 1e6 -0.5"},
		"float8e5m2 [3] 1.5 57344 -0.25"},
	{"opset 19; in x float8e4m3fn [2]; init s float [] 2; out y;"
	 "node DequantizeLinear x s > y;", {"float8e4m3fn [2] 448 -0.5"},
		"float [2] 896 -1"},
	{"opset 13; typed w bool [2] 1 0; out y; node Not w > y;",
		{NULL}, "bool [2] 0 1"},
	{"opset 13; in x float [N,2]; out y; node Identity x > y;",
		{"float [1,2] 1 2"}, "float [1,2] 1 2"},
	/* what decides a shape must be known */
	{"opset 13; in x float [2]; in k float []; init z float [] 0;"
	 "out y; node Range z k k > y;", {"float [2] 1 1", "float [] 0"},
		"!onnx.attr"},
};

static void runs_case(arena *a, void *arg)
{
	const run_case *c = arg;
	run_case known = *c;
	onnx_array got, want;

	/* "*": any elements */
	for (int32_t i = 0; i < MAX_IN && known.in[i] != NULL; i++) {
		const char *star = strchr(known.in[i], '*');

		if (star != NULL)
			known.in[i] = arena_printf(a, "%.*s1 2 3 4 5 6 7 8 9 "
				"10 11 12", (int)(star - known.in[i]),
				known.in[i]);
	}
	got = run_model(a, &known, true);
	if (c->out[0] == '!')
		return;
	want = parse_value(a, NULL, c->out);
	assert_int_equal(got.elem, want.elem);
	assert_int_equal(got.type.dtype, want.type.dtype);
	assert_int_equal(got.type.rank, want.type.rank);
	for (int32_t i = 0; i < want.type.rank; i++)
		assert_int_equal(got.type.shape[i], want.type.shape[i]);
	for (int64_t i = 0; i < shape_numel(want.type.shape, want.type.rank);
		i++)
		assert_true(fabs(dtype_load_f64(got.type.dtype, got.data, i) -
				    dtype_load_f64(want.type.dtype, want.data,
					    i)) < 1e-6);
}

static void test_models_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		run_case c = runs[i];
		tn_diag d;
		tn_status s = unit_run(runs_case, &c, 0, &d);

		if (c.out[0] == '!') {
			assert_int_equal(s, TN_EINVAL);
			assert_string_equal(d.rule, c.out + 1);
		} else if (s != TN_OK) {
			print_error("%s\n%s: %s\n", c.model, d.rule, d.text);
			fail();
		}
	}
}

static void test_every_allocation_may_fail(void **state)
{
	static run_case c = {"opset 13; in x float [2,3]; out y;"
		"init w float [3] 1 2 3; node Add x w > t; init s int64 [1] -1;"
		"node Reshape t s > y;", {"float [2,3] 1 2 3 4 5 6"},
		"float [6] 2 4 6 5 7 9"};

	(void)state;
	unit_each_alloc_fails(runs_case, &c);
}

/* ---- all values of the narrow types ---- */

static const struct narrow {
	const char *elem;
	tn_dtype held;
	int64_t lo, hi;
} narrows[] = {{"uint8", TN_U8, 0, 255}, {"int8", TN_I8, -128, 127},
	{"uint16", TN_U16, 0, 65535}, {"int16", TN_I16, -32768, 32767}};

/* What a value of more bits becomes in the type. */
static int64_t wrapped(const struct narrow *t, int64_t v)
{
	int64_t n = t->hi - t->lo + 1, r = (v - t->lo) % n;

	return t->lo + (r < 0 ? r + n : r);
}

/* %s: the type; what comes of v in the type `to` (-1: the same) */
static const struct narrow_case {
	const char *model;
	int32_t to; /* number of the result's type; -1: the same, -2: bool */
	int64_t a, b, not; /* wrapped(a * v + b), then against `not` */
} narrow_cases[] = {
	{"node BitwiseNot x > y;", -1, -1, -1, 0},
	{"init k %s [] 3; node Mul x k > y;", -1, 3, 0, 0},
	{"init k %s [] 77; node Sub x k > y;", -1, 1, -77, 0},
	{"init k %s [] 77; node Sum x k > y;", -1, 1, 77, 0},
	{"node Cast x > y : to=2;", 0, 1, 0, 0},
	{"node Cast x > y : to=3;", 1, 1, 0, 0},
	{"node Cast x > y : to=4;", 2, 1, 0, 0},
	{"node Cast x > y : to=5;", 3, 1, 0, 0},
	{"node Cast x > w : to=1; node Cast w > y : to=4;", 2, 1, 0, 0},
	{"init k %s [] 77; node Greater x k > y;", -2, 1, 0, 77},
	/* there and back again; beyond the ends are the ends */
	{"init s float [] 0.125; init z %s [] 5; node DequantizeLinear x s z > w;"
	 "node QuantizeLinear w s z > y;", -1, 1, 0, 0},
	{"init s float16 [] 0.125; init z %s [] 5;"
	 "node DequantizeLinear x s z > w; node Cast w > v : to=1;"
	 "init t float [] 0.25; node QuantizeLinear v t z > y;", -3, 0, 0, 0},
	{"init s float [] 0.5; init t float [] 0.125; init z %s [] 5;"
	 "node DequantizeLinear x s z > w; node QuantizeLinear w t z > y;",
		-4, 0, 0, 0},
};

static int64_t narrow_wants(
	const struct narrow_case *c, const struct narrow *t, int64_t v)
{
	int64_t q;

	if (c->to == -2)
		return v > c->not;
	if (c->to == -4) {
		q = 4 * (v - 5) + 5;
		return q < t->lo ? t->lo : q > t->hi ? t->hi : q;
	}
	return wrapped(c->to < 0 ? t : &narrows[c->to], c->a * v + c->b);
}

/* Halves in f16 round to even twice: near enough to what was meant. */
static bool is_near(const struct narrow *t, int64_t v, int64_t have)
{
	double want = (double)(v - 5) / 2 + 5;
	double slack = 0.5 + fabs((double)(v - 5)) / 2048;

	if (want < (double)t->lo || want > (double)t->hi)
		return true;
	return fabs((double)have - want) <= slack;
}

struct narrow_run {
	const struct narrow_case *c;
	const struct narrow *t;
};

static void narrow_run(arena *a, void *arg)
{
	const struct narrow_run *r = arg;
	const struct narrow *t = r->t;
	int64_t n = t->hi - t->lo + 1;
	str s = str_new(a);
	onnx_array got, in = {.type = {.dtype = t->held, .rank = 1,
				      .shape = {n}}};
	const char *at = strstr(r->c->model, "%s");
	void *data = arena_alloc(a, (size_t)n, dtype_size(t->held));

	str_printf(&s, "opset 21; in x %s [%d]; out y;", t->elem, (int)n);
	if (at != NULL)
		str_printf(&s, "%.*s%s%s", (int)(at - r->c->model),
			r->c->model, t->elem, at + 2);
	else
		str_add(&s, r->c->model);
	for (int64_t i = 0; i < n; i++)
		dtype_store_i64(t->held, data, i, t->lo + i);
	in.data = data;
	got = run_given(a, s.at, &in);
	for (int64_t i = 0; i < n; i++) {
		int64_t v = t->lo + i, want = narrow_wants(r->c, t, v);
		int64_t have = dtype_load_i64(got.type.dtype, got.data, i);

		if (r->c->to == -3 ? !is_near(t, v, have) : have != want)
			fail_msg("%s of %s %d: %d, not %d", r->c->model,
				t->elem, (int)v, (int)have, (int)want);
	}
}

static void test_narrow_types(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof narrow_cases / sizeof *narrow_cases; i++)
		for (size_t k = 0; k < sizeof narrows / sizeof *narrows; k++) {
			struct narrow_run r = {&narrow_cases[i], &narrows[k]};
			tn_diag d;

			if (unit_run(narrow_run, &r, 0, &d) != TN_OK)
				fail_msg("%s of %s: [%s] %s", r.c->model,
					r.t->elem, d.rule, d.text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models_run),
		cmocka_unit_test(test_narrow_types),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
