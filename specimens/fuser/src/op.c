#include "op.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define SCALAR(name, expr)                               \
	static double name(double a, double b, double c) \
	{                                                \
		(void)a, (void)b, (void)c;               \
		return (expr);                           \
	}

SCALAR(do_set, a)
SCALAR(do_neg, -a)
SCALAR(do_abs, fabs(a))
SCALAR(do_exp, exp(a))
SCALAR(do_log, log(a))
SCALAR(do_sqrt, sqrt(a))
SCALAR(do_rsqrt, 1.0 / sqrt(a))
SCALAR(do_sin, sin(a))
SCALAR(do_cos, cos(a))
SCALAR(do_tanh, tanh(a))
SCALAR(do_sigmoid, 1.0 / (1.0 + exp(-a)))
SCALAR(do_erf, erf(a))
SCALAR(do_relu, a > 0 ? a : 0)
SCALAR(do_floor, floor(a))
SCALAR(do_ceil, ceil(a))
SCALAR(do_sign, (double)((a > 0) - (a < 0)))
SCALAR(do_isfinite, isfinite(a) ? 1 : 0)
SCALAR(do_signbit, signbit(a) ? 1 : 0)
SCALAR(do_not, a == 0)
SCALAR(do_add, a + b)
SCALAR(do_sub, a - b)
SCALAR(do_mul, (a) * (b))
SCALAR(do_div, a / b)
SCALAR(do_mod, fmod(a, b))
SCALAR(do_pow, pow(a, b))
SCALAR(do_max, a > b ? a : b)
SCALAR(do_min, a < b ? a : b)
SCALAR(do_nextafter, (double)nextafterf((float)a, (float)b))
SCALAR(do_eq, a == b)
SCALAR(do_lt, a < b)
SCALAR(do_gt, a > b)
SCALAR(do_and, a != 0 && b != 0)
SCALAR(do_or, a != 0 || b != 0)
SCALAR(do_where, a != 0 ? b : c)
SCALAR(do_clamp, a<b ? b : a> c ? c : a)
SCALAR(do_lerp, a + c * (b - a))

static double do_gcd(double a, double b, double c)
{
	int64_t x = (int64_t)fabs(a), y = (int64_t)fabs(b);

	(void)c;
	while (y) {
		int64_t r = x % y;

		x = y;
		y = r;
	}
	return (double)x;
}

static const struct op_info ops[OP_COUNT] = {
	[OP_SET] = { "set", OPC_VIEW, 1, false, do_set },
	[OP_CAST] = { "cast", OPC_UNARY, 1, false, do_set },
	[OP_NEG] = { "neg", OPC_UNARY, 1, false, do_neg },
	[OP_ABS] = { "abs", OPC_UNARY, 1, false, do_abs },
	[OP_EXP] = { "exp", OPC_UNARY, 1, false, do_exp },
	[OP_LOG] = { "log", OPC_UNARY, 1, false, do_log },
	[OP_SQRT] = { "sqrt", OPC_UNARY, 1, false, do_sqrt },
	[OP_RSQRT] = { "rsqrt", OPC_UNARY, 1, false, do_rsqrt },
	[OP_SIN] = { "sin", OPC_UNARY, 1, false, do_sin },
	[OP_COS] = { "cos", OPC_UNARY, 1, false, do_cos },
	[OP_TANH] = { "tanh", OPC_UNARY, 1, false, do_tanh },
	[OP_SIGMOID] = { "sigmoid", OPC_UNARY, 1, false, do_sigmoid },
	[OP_ERF] = { "erf", OPC_UNARY, 1, false, do_erf },
	[OP_RELU] = { "relu", OPC_UNARY, 1, false, do_relu },
	[OP_FLOOR] = { "floor", OPC_UNARY, 1, false, do_floor },
	[OP_CEIL] = { "ceil", OPC_UNARY, 1, false, do_ceil },
	[OP_SIGN] = { "sign", OPC_UNARY, 1, false, do_sign },
	[OP_ISFINITE] = { "isfinite", OPC_UNARY, 1, true, do_isfinite },
	[OP_SIGNBIT] = { "signbit", OPC_UNARY, 1, true, do_signbit },
	[OP_NOT] = { "not", OPC_UNARY, 1, true, do_not },
	[OP_ADD] = { "add", OPC_BINARY, 2, false, do_add },
	[OP_SUB] = { "sub", OPC_BINARY, 2, false, do_sub },
	[OP_MUL] = { "mul", OPC_BINARY, 2, false, do_mul },
	[OP_DIV] = { "div", OPC_BINARY, 2, false, do_div },
	[OP_MOD] = { "mod", OPC_BINARY, 2, false, do_mod },
	[OP_POW] = { "pow", OPC_BINARY, 2, false, do_pow },
	[OP_MAXIMUM] = { "maximum", OPC_BINARY, 2, false, do_max },
	[OP_MINIMUM] = { "minimum", OPC_BINARY, 2, false, do_min },
	[OP_GCD] = { "gcd", OPC_BINARY, 2, false, do_gcd },
	[OP_NEXTAFTER] = { "nextafter", OPC_BINARY, 2, false, do_nextafter },
	[OP_EQ] = { "eq", OPC_BINARY, 2, true, do_eq },
	[OP_LT] = { "lt", OPC_BINARY, 2, true, do_lt },
	[OP_GT] = { "gt", OPC_BINARY, 2, true, do_gt },
	[OP_AND] = { "and", OPC_BINARY, 2, true, do_and },
	[OP_OR] = { "or", OPC_BINARY, 2, true, do_or },
	[OP_WHERE] = { "where", OPC_TERNARY, 3, false, do_where },
	[OP_CLAMP] = { "clamp", OPC_TERNARY, 3, false, do_clamp },
	[OP_LERP] = { "lerp", OPC_TERNARY, 3, false, do_lerp },
	[OP_SUM] = { "sum", OPC_REDUCTION, 1, false, NULL },
	[OP_PROD] = { "prod", OPC_REDUCTION, 1, false, NULL },
	[OP_AMAX] = { "amax", OPC_REDUCTION, 1, false, NULL },
	[OP_AMIN] = { "amin", OPC_REDUCTION, 1, false, NULL },
	[OP_MEAN] = { "mean", OPC_REDUCTION, 1, false, NULL },
	[OP_VAR] = { "var", OPC_REDUCTION, 1, false, NULL },
	[OP_RESHAPE] = { "reshape", OPC_VIEW, 1, false, NULL },
	[OP_PERMUTE] = { "permute", OPC_VIEW, 1, false, NULL },
	[OP_BROADCAST] = { "broadcast_in_dim", OPC_VIEW, 1, false, NULL },
	[OP_EXPAND] = { "expand", OPC_VIEW, 1, false, NULL },
	[OP_SQUEEZE] = { "squeeze", OPC_VIEW, 1, false, NULL },
	[OP_SLICE] = { "slice", OPC_VIEW, 1, false, NULL },
	[OP_PAD] = { "pad", OPC_VIEW, 2, false, NULL },
	[OP_CAT] = { "cat", OPC_VIEW, 2, false, NULL },
	[OP_INDEX_SELECT] = { "index_select", OPC_INDEX, 2, false, NULL },
	[OP_GATHER] = { "gather", OPC_INDEX, 2, false, NULL },
	[OP_IOTA] = { "iota", OPC_FACTORY, 0, false, NULL },
	[OP_FULL] = { "full", OPC_FACTORY, 1, false, NULL },
	[OP_MATMUL] = { "matmul", OPC_MATMUL, 2, false, NULL },
};

const struct op_info *op_info(enum ir_op op)
{
	return &ops[op];
}

/* IEEE half precision by way of scaling: eleven significant bits, 65504 at most. */
static double round_half(double v)
{
	int exp;
	double m;

	if (v == 0 || !isfinite(v))
		return v;
	m = frexp(v, &exp);
	if (exp < -13)
		return ldexp(nearbyint(ldexp(v, 24)), -24);
	v = ldexp(nearbyint(ldexp(m, 11)), exp - 11);
	return fabs(v) > 65504.0 ? copysign(INFINITY, v) : v;
}

double dtype_round(enum ir_dtype dtype, double v)
{
	switch (dtype) {
	case IR_BOOL:
		return v != 0;
	case IR_INT:
		return trunc(v);
	case IR_HALF:
		return round_half(v);
	case IR_FLOAT:
		return (double)(float)v;
	default:
		return v;
	}
}
