/*
 * onnx/: the operators of ai.onnx.ml: trees, labels, linear models, on values
 * that are computed by hand; and trees that are none.
 */
#include "onnx_run.h"

#define ML(in, node) "opset 18; opset 3 ai.onnx.ml; " in "out y; node ai.onnx.ml/" node ";"
#define X2 "in x float [N,2];"

/* ---- features, labels, linear models ---- */

static const run_case simple[] = {
	{ML(X2, "Scaler x > y : offset=[1.0,2.0] scale=[10.0,0.5]"),
		{"float [2,2] 1 2 3 4"}, "float [2,2] 0 0 20 1"},
	{ML("in x int64 [2];", "Scaler x > y : offset=[1.0] scale=[0.5]"),
		{"int64 [2] 1 4"}, "float [2] 0 1.5"},
	{ML(X2, "Scaler x > y : offset=[1.0,2.0,3.0]"),
		{"float [2,2] 1 2 3 4"}, "!onnx.attr"},
	{ML(X2, "Binarizer x > y : threshold=1.0"),
		{"float [1,2] 1 1.5"}, "float [1,2] 0 1"},
	{ML(X2 "init i int64 [2] 1 0;", "ArrayFeatureExtractor x i > y"),
		{"float [2,2] 1 2 3 4"}, "float [2,2] 2 1 4 3"},
	{ML("in x float [3]; init i int64 [2] 2 0;",
		 "ArrayFeatureExtractor x i > y"),
		{"float [3] 1 2 3"}, "float [1,2] 3 1"},
	{ML(X2, "Imputer x > y : imputed_value_floats=[7.0,8.0] "
		"replaced_value_float=1.0"),
		{"float [2,2] 1 1 3 1"}, "float [2,2] 7 8 3 8"},
	{ML("in x int64 [2,2];", "Imputer x > y : imputed_value_int64s=[7] "
		"replaced_value_int64=1"),
		{"int64 [2,2] 1 1 3 1"}, "int64 [2,2] 7 7 3 7"},
	{ML(X2, "Imputer x > y"), {"float [2,2] 1 1 3 1"}, "!onnx.attr"},
	{ML(X2, "Normalizer x > y : norm=\"L2\""),
		{"float [2,2] 3 -4 0 0"}, "float [2,2] 0.6 -0.8 0 0"},
	{ML(X2, "Normalizer x > y : norm=\"L1\""),
		{"float [1,2] 1 -3"}, "float [1,2] 0.25 -0.75"},
	{ML(X2, "Normalizer x > y"), {"float [1,2] 1 -4"},
		"float [1,2] 0.25 -1"},
	{ML(X2, "Normalizer x > y : norm=\"L3\""), {"float [1,2] 1 -4"},
		"!onnx.attr"},
	{ML(X2 "in z int64 [1,1];",
		 "FeatureVectorizer x z > y : inputdimensions=[2,1]"),
		{"float [1,2] 1 2", "int64 [1,1] 3"}, "float [1,3] 1 2 3"},
	{ML(X2, "FeatureVectorizer x > y : inputdimensions=[3]"),
		{"float [1,2] 1 2"}, "!onnx.attr"},
	{ML("in x int64 [3];", "OneHotEncoder x > y : cats_int64s=[5,6]"),
		{"int64 [3] 6 5 4"}, "float [3,2] 0 1 1 0 0 0"},
	{ML("in x int64 [4];", "LabelEncoder x > y : keys_int64s=[5,6,5] "
		"values_floats=[1.5,2.5,3.5] default_float=-1.0"),
		{"int64 [4] 6 5 4 5"}, "float [4] 2.5 3.5 -1 3.5"},
	{ML("in x float [3];", "LabelEncoder x > y : keys_tensor=(k float [2] "
		"nan 1) values_tensor=(v int64 [2] 10 20) "
		"default_tensor=(d int64 [1] 30)"),
		{"float [3] nan 1 2"}, "int64 [3] 10 20 30"},
	{ML("in x int64 [3];", "LabelEncoder x > y : keys_int64s=[5,6] "
		"values_floats=[1.5]"), {"int64 [3] 6 5 4"}, "!onnx.attr"},
	{ML("in x int64 [3];", "LabelEncoder x > y : keys_int64s=[5] "
		"values_strings=[\"a\"]"), {"int64 [3] 6 5 4"},
		"string [3] _Unused a _Unused"},
	{ML("in x string [3];", "LabelEncoder x > y : "
		"keys_strings=[\"a\",\"b\"] values_int64s=[4,7] "
		"default_int64=9"), {"string [3] b a ab"}, "int64 [3] 7 4 9"},
	{ML("in x string [2];", "LabelEncoder x > y : keys_tensor=(k string [1] "
		"a) values_tensor=(v string [1] b) default_string=\"c\""),
		{"string [2] a b"}, "string [2] b c"},
	{ML("in x string [1];", "LabelEncoder x > y : keys_tensor=(k int32 [1] "
		"0) values_int64s=[4]"), {"string [1] a"}, "!onnx.type"},
	{ML("in x int32 [1];", "LabelEncoder x > y : keys_strings=[\"a\"] "
		"values_int64s=[4]"), {"int32 [1] 0"}, "!onnx.type"},
	{ML("in x string [3];", "OneHotEncoder x > y : "
		"cats_strings=[\"b\",\"a\"]"), {"string [3] a c b"},
		"float [3,2] 0 1 0 0 1 0"},
	{ML("in x string [1];", "OneHotEncoder x > y : cats_int64s=[0]"),
		{"string [1] a"}, "!onnx.type"},
	{ML("in x string [1];", "Binarizer x > y : threshold=1.0"),
		{"string [1] a"}, "!onnx.elem"},
	{ML("in x float [3];", "LabelEncoder x > y : keys_int64s=[5] "
		"values_int64s=[6]"), {"float [3] 6 5 4"}, "!onnx.type"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,2.0,3.0,4.0] "
		"intercepts=[10.0,20.0] targets=2"),
		{"float [1,2] 1 1"}, "float [1,2] 13 27"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,2.0,3.0] targets=2"),
		{"float [1,2] 1 1"}, "!onnx.attr"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,2.0] "
		"post_transform=\"LOGISTIC\""),
		{"float [2,2] 0 0 -1 1"}, "float [2,1] 0.5 0.731058579"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,0.0,0.0,1.0] "
		"targets=2 post_transform=\"SOFTMAX_ZERO\""),
		{"float [2,2] 0 1 0 0"}, "float [2,2] 0 1 0.5 0.5"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,0.0] "
		"post_transform=\"PROBIT\""),
		{"float [2,2] 0.5 1 0.841344746 0"}, "float [2,1] 0 1.000174"},
	{ML(X2, "LinearRegressor x > y : coefficients=[1.0,0.0] "
		"post_transform=\"CUBE\""), {"float [1,2] 0 1"}, "!onnx.attr"},
	{ML(X2, "LinearClassifier x > y z : coefficients=[1.0,0.0,0.0,1.0] "
		"classlabels_ints=[30,40]"),
		{"float [2,2] 2 1 1 2"}, "int64 [2] 30 40"},
	{ML(X2, "LinearClassifier x > z y : coefficients=[1.0,0.0] "
		"classlabels_ints=[30,40]"),
		{"float [2,2] 2 1 -1 2"}, "float [2,2] -2 2 1 -1"},
	{ML(X2, "LinearClassifier x > y z : coefficients=[1.0,0.0,0.0,1.0] "
		"classlabels_strings=[\"a\",\"b\"]"),
		{"float [2,2] 2 1 1 2"}, "string [2] a b"},
};

static void test_simple(void **state)
{
	(void)state;
	check_runs(simple, sizeof simple / sizeof *simple);
}

/* ---- trees ---- */

/* x0 <= 0.5 ? 1 : (x1 == 3 ? 2 : 3), and a tree that is the leaf 4 */
#define NODES                                                                  \
	"nodes_treeids=[0,0,0,0,0,7] nodes_nodeids=[0,1,2,3,4,0] "             \
	"nodes_featureids=[0,0,1,0,0,0] nodes_values=[0.5,0.0,3.0,0.0,0.0,0.0] " \
	"nodes_modes=[\"BRANCH_LEQ\",\"LEAF\",\"BRANCH_EQ\",\"LEAF\",\"LEAF\","  \
	"\"LEAF\"] nodes_truenodeids=[1,0,3,0,0,0] "                           \
	"nodes_falsenodeids=[2,0,4,0,0,0] "
#define REGRESSOR(more)                                                        \
	ML(X2, "TreeEnsembleRegressor x > y : " NODES "target_treeids=[0,0,0,7] " \
		"target_nodeids=[1,3,4,0] target_weights=[1.0,2.0,3.0,4.0] "   \
		more)
#define CLASSIFIER(out, more)                                                  \
	ML(X2, "TreeEnsembleClassifier x > " out " : " NODES                   \
		"class_treeids=[0,0,0,7] class_nodeids=[1,3,4,0] " more)
#define ROWS3 {"float [3,2] 0.5 3 1 3 1 2"}
/* one tree: x0 <= 0.5 ? (x0 is one of the members ? 10 : 20) : 30 */
#define ENSEMBLE(more)                                                         \
	"opset 18; opset 5 ai.onnx.ml;" X2 "out y; node ai.onnx.ml/TreeEnsemble " \
	"x > y : n_targets=1 nodes_featureids=[0,0] leaf_targetids=[0,0,0] "   \
	"nodes_modes=(m uint8 [2] 0 6) nodes_splits=(s float [2] 0.5 0) "      \
	"leaf_weights=(w float [3] 10 20 30) " more ";"
#define BRANCHES                                                               \
	"tree_roots=[0] nodes_truenodeids=[1,0] nodes_falsenodeids=[2,1] "     \
	"nodes_trueleafs=[0,1] nodes_falseleafs=[1,1] "
#define ROWS4 {"float [4,2] -1 0 -2 0 -3 0 1 0"}

static const run_case trees[] = {
	{REGRESSOR("target_ids=[0,0,0,0]"), ROWS3, "float [3,1] 5 6 7"},
	{REGRESSOR("target_ids=[0,0,0,0] aggregate_function=\"AVERAGE\" "
		   "base_values=[10.0]"), ROWS3, "float [3,1] 12.5 13 13.5"},
	{REGRESSOR("target_ids=[0,0,0,0] aggregate_function=\"MIN\""), ROWS3,
		"float [3,1] 1 2 3"},
	{REGRESSOR("target_ids=[0,0,0,0] aggregate_function=\"MAX\""), ROWS3,
		"float [3,1] 4 4 4"},
	{REGRESSOR("target_ids=[0,1,0,1] n_targets=2"), ROWS3,
		"float [3,2] 1 4 0 6 3 4"},
	{REGRESSOR("target_ids=[0,1,0,1] n_targets=2 "
		   "aggregate_function=\"MAX\""), ROWS3,
		"float [3,2] 1 4 0 4 3 4"},
	/* NaN leads to the second branch, or where it is said */
	{REGRESSOR("target_ids=[0,0,0,0]"), {"float [1,2] nan 3"},
		"float [1,1] 6"},
	{REGRESSOR("target_ids=[0,0,0,0] "
		   "nodes_missing_value_tracks_true=[1,0,0,0,0,0]"),
		{"float [1,2] nan 3"}, "float [1,1] 5"},
	{REGRESSOR("target_ids=[0,0,0,0]"), {"float [0,2]"}, "float [0,1]"},
	{REGRESSOR("target_ids=[0,0,1,0]"), ROWS3, "!onnx.attr"},
	{REGRESSOR("target_ids=[0,0,0]"), ROWS3, "!onnx.attr"},
	{REGRESSOR("target_ids=[0,0,0,0] aggregate_function=\"MEAN\""), ROWS3,
		"!onnx.attr"},
	{CLASSIFIER("y z", "class_ids=[0,1,2,1] classlabels_int64s=[10,20,30] "
		"class_weights=[9.0,1.0,7.0,2.0]"), ROWS3,
		"int64 [3] 10 20 30"},
	{CLASSIFIER("z y", "class_ids=[0,1,2,1] classlabels_int64s=[10,20,30] "
		"class_weights=[9.0,1.0,7.0,2.0]"), ROWS3,
		"float [3,3] 9 2 0 0 3 0 0 2 7"},
	/* all votes for number 0: they are the score of the second */
	{CLASSIFIER("z y", "class_ids=[0,0,0,0] classlabels_int64s=[10,20] "
		"class_weights=[0.25,0.5,0.0,0.125]"), ROWS3,
		"float [3,2] 0.625 0.375 0.375 0.625 0.875 0.125"},
	{CLASSIFIER("y z", "class_ids=[0,0,0,0] classlabels_int64s=[10,20] "
		"class_weights=[0.25,0.5,0.0,0.125]"), ROWS3,
		"int64 [3] 10 20 10"},
	{CLASSIFIER("z y", "class_ids=[0,0,0,0] classlabels_int64s=[10,20] "
		"class_weights=[-1.0,1.0,0.0,0.0] "
		"post_transform=\"LOGISTIC\""), ROWS3,
		"float [3,2] 0.731058579 0.268941421 0.268941421 0.731058579 "
		"0.5 0.5"},
	{CLASSIFIER("y z", "class_ids=[0,0,0,0] classlabels_int64s=[10,20] "
		"class_weights=[-1.0,1.0,0.0,0.0]"), ROWS3,
		"int64 [3] 10 20 10"},
	{CLASSIFIER("y z", "class_ids=[0,0,0,0] classlabels_strings=[\"a\",\"b\"] "
		"class_weights=[-1.0,1.0,0.0,0.0]"), ROWS3, "string [3] a b a"},
	{CLASSIFIER("y z", "class_ids=[0,0,0,0] classlabels_int64s=[10] "
		"class_weights=[-1.0,1.0,0.0,0.0]"), ROWS3, "!onnx.attr"},
	{ENSEMBLE(BRANCHES "membership_values=(v float [3] -1 -3 nan)"), ROWS4,
		"float [4,1] 10 20 10 30"},
	{ENSEMBLE(BRANCHES "membership_values=(v float [1] nan)"), ROWS4,
		"float [4,1] 20 20 20 30"},
	{ENSEMBLE(BRANCHES "membership_values=(v float [2] -1 -3)"), ROWS4,
		"!onnx.attr"},
	{ENSEMBLE(BRANCHES), ROWS4, "!onnx.attr"},
	/* a cycle, a branch and a root that are not there */
	{ENSEMBLE("tree_roots=[0] nodes_truenodeids=[1,0] "
		"nodes_falsenodeids=[2,0] nodes_trueleafs=[0,1] "
		"nodes_falseleafs=[1,0] membership_values=(v float [1] nan)"),
		ROWS4, "!onnx.attr"},
	{ENSEMBLE("tree_roots=[0] nodes_truenodeids=[1,3] "
		"nodes_falsenodeids=[2,1] nodes_trueleafs=[0,1] "
		"nodes_falseleafs=[1,1] membership_values=(v float [1] nan)"),
		ROWS4, "!onnx.attr"},
	{ENSEMBLE("tree_roots=[2] nodes_truenodeids=[1,0] "
		"nodes_falsenodeids=[2,1] nodes_trueleafs=[0,1] "
		"nodes_falseleafs=[1,1] membership_values=(v float [1] nan)"),
		ROWS4, "!onnx.attr"},
	{ENSEMBLE(BRANCHES "membership_values=(v float [1] nan) "
		"post_transform=9"), ROWS4, "!onnx.attr"},
};

static void test_trees(void **state)
{
	(void)state;
	check_runs(trees, sizeof trees / sizeof *trees);
}

/* Nodes that a tree of the older form must not have. */
static void test_no_trees(void **state)
{
	static const run_case cases[] = {
		{ML(X2, "TreeEnsembleRegressor x > y : nodes_treeids=[0,0] "
			"nodes_nodeids=[0,1] nodes_featureids=[0,0] "
			"nodes_values=[0.5,0.0] "
			"nodes_modes=[\"BRANCH_LT\",\"LEAF\"] "
			"nodes_truenodeids=[0,0] nodes_falsenodeids=[1,0] "
			"target_treeids=[0] target_nodeids=[1] target_ids=[0] "
			"target_weights=[1.0]"), ROWS3, "!onnx.attr"},
		{ML(X2, "TreeEnsembleRegressor x > y : nodes_treeids=[0,0] "
			"nodes_nodeids=[0,1] nodes_featureids=[0,0] "
			"nodes_values=[0.5,0.0] "
			"nodes_modes=[\"BRANCH_LT\",\"LEAF\"] "
			"nodes_truenodeids=[2,0] nodes_falsenodeids=[1,0] "
			"target_treeids=[0] target_nodeids=[1] target_ids=[0] "
			"target_weights=[1.0]"), ROWS3, "!onnx.attr"},
		{ML(X2, "TreeEnsembleRegressor x > y : nodes_treeids=[0,0] "
			"nodes_nodeids=[0,0] nodes_featureids=[0,0] "
			"nodes_values=[0.5,0.0] "
			"nodes_modes=[\"LEAF\",\"LEAF\"] "
			"nodes_truenodeids=[0,0] nodes_falsenodeids=[0,0] "
			"target_treeids=[0] target_nodeids=[0] target_ids=[0] "
			"target_weights=[1.0]"), ROWS3, "!onnx.attr"},
		{ML(X2, "TreeEnsembleRegressor x > y : nodes_treeids=[0] "
			"nodes_nodeids=[0] nodes_featureids=[2] "
			"nodes_values=[0.5] nodes_modes=[\"BRANCH_LIKE\"] "
			"nodes_truenodeids=[0] nodes_falsenodeids=[0] "
			"target_treeids=[0] target_nodeids=[0] target_ids=[0] "
			"target_weights=[1.0]"), ROWS3, "!onnx.attr"},
	};

	(void)state;
	check_runs(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simple),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_no_trees)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
