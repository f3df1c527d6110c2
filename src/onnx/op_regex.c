/*
 * op_regex.c: RegexFullMatch: does a regular expression match a string as a whole?
 *
 *     "a(b|c)*"        ->  0 set a; 1 split 2 7; 2 split 3 5; 3 set b; ..
 *     "abcb" matches, "abd" does not
 *
 * An expression becomes instructions of a machine that is in many states at a time,
 * so a match takes at most (instructions x characters) steps, whatever the
 * expression is (K. Thompson, Regular expression search algorithm, 1968). Of the
 * syntax of RE2: characters, . [] | () (?:) * + ? {m,n} ^ $ \b \B \A \z \d \s \w and
 * their opposites. What else there is, is refused.
 */
#include "onnx/ops.h"
#include "onnx/texts.h"

enum { MAX_CODE = 1 << 14, MAX_DEPTH = 200, MAX_TIMES = 1000 };
enum { END = 0x110000 }; /* behind the last character */

typedef enum op {
	OP_SET,	  /* a character of the set; then the next instruction */
	OP_SPLIT, /* both x and y */
	OP_ASSERT, /* x: what must hold here */
	OP_MATCH
} op;

typedef struct range {
	uint32_t lo, hi;
} range;

typedef struct inst {
	op op;
	int32_t x, y;	/* SET: ranges x .. y-1 */
	bool negated;
} inst;

typedef struct regex {
	node *d;
	arena *a;
	const uint8_t *at, *end;
	int32_t depth;
	VEC(inst) code;
	VEC(range) range;
} regex;

static _Noreturn void bad(const regex *r, const char *what)
{
	on_fail(r->d, "onnx.attr", "pattern: %s, %lld bytes before its end",
		what, (long long)(r->end - r->at));
}

static int32_t emit(regex *r, inst i)
{
	if (r->code.n == MAX_CODE)
		bad(r, "it is too large, with its repetitions counted out");
	*vec_push(r->a, &r->code) = i;
	return r->code.n - 1;
}

static bool accept(regex *r, char c)
{
	if (r->at == r->end || *r->at != (uint8_t)c)
		return false;
	r->at++;
	return true;
}

static uint32_t next_of(regex *r)
{
	if (r->at == r->end)
		bad(r, "it ends too early");
	return onnx_utf8(&r->at);
}

/* ---- sets of characters ---- */

static void add_range(regex *r, uint32_t lo, uint32_t hi)
{
	if (r->range.n == MAX_CODE)
		bad(r, "it has too many ranges of characters");
	*vec_push(r->a, &r->range) = (range){lo, hi};
}

/* \d \s \w and their opposites; false: c is none of them. */
static bool add_class(regex *r, uint32_t c)
{
	static const range digit[] = {{'0', '9'}, {END, END}};
	static const range space[] = {
		{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}, {END, END}};
	static const range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'},
		{'a', 'z'}, {END, END}};
	const range *from = c == 'd' || c == 'D' ? digit
		: c == 's' || c == 'S' ? space
		: c == 'w' || c == 'W' ? word : NULL;
	uint32_t lo = 0;

	if (from == NULL)
		return false;
	for (; c >= 'a' && from->lo < END; from++)
		add_range(r, from->lo, from->hi);
	for (; c < 'a'; from++) { /* what is between them */
		if (from->lo > lo)
			add_range(r, lo, from->lo - 1);
		if (from->lo == END)
			break;
		lo = from->hi + 1;
	}
	return true;
}

/* The character that stands behind a backslash. */
static uint32_t escaped(regex *r, uint32_t c)
{
	static const char from[] = "tnrfv", to[] = "\t\n\r\f\v";
	const char *p = c < 0x80 && c != 0 ? strchr(from, (int)c) : NULL;
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9');

	if (p != NULL)
		return (uint8_t)to[p - from];
	if (letter || c >= 0x80)
		bad(r, "what stands behind a backslash is not supported");
	return c;
}

/* A character of [..]; END: it was a class, which is added. */
static uint32_t member(regex *r)
{
	uint32_t c = next_of(r);

	if (c == '[' && r->at < r->end &&
		(*r->at == ':' || *r->at == '.' || *r->at == '='))
		bad(r, "classes with names are not supported");
	if (c != '\\')
		return c;
	c = next_of(r);
	return add_class(r, c) ? (uint32_t)END : escaped(r, c);
}

static void brackets(regex *r)
{
	inst set = {OP_SET, r->range.n, 0, accept(r, '^')};

	do {
		uint32_t lo = member(r), hi = lo;

		if (lo == END)
			continue;
		if (r->end - r->at > 1 && r->at[0] == '-' && r->at[1] != ']') {
			r->at++;
			hi = member(r);
		}
		if (hi == END || hi < lo)
			bad(r, "a range of characters is upside down");
		add_range(r, lo, hi);
	} while (!accept(r, ']'));
	set.y = r->range.n;
	emit(r, set);
}

static void emit_char(regex *r, uint32_t c)
{
	add_range(r, c, c);
	emit(r, (inst){OP_SET, r->range.n - 1, r->range.n, false});
}

/* ---- expressions ---- */

static void alternatives(regex *r);

static void escape(regex *r)
{
	uint32_t c = next_of(r);
	int32_t from = r->range.n;

	if (c == 'b' || c == 'B' || c == 'A' || c == 'z')
		emit(r, (inst){OP_ASSERT, c == 'A' ? '^' : c == 'z' ? '$'
						: (int32_t)c, 0, false});
	else if (add_class(r, c))
		emit(r, (inst){OP_SET, from, r->range.n, false});
	else
		emit_char(r, escaped(r, c));
}

static void group(regex *r)
{
	if (accept(r, '?') && !accept(r, ':'))
		bad(r, "of groups with flags or names only (?: is supported");
	alternatives(r);
	if (!accept(r, ')'))
		bad(r, "a group has no end");
}

static void atom(regex *r)
{
	uint32_t c = next_of(r);

	if (c == '(') {
		group(r);
	} else if (c == '[') {
		brackets(r);
	} else if (c == '\\') {
		escape(r);
	} else if (c == '^' || c == '$') {
		emit(r, (inst){OP_ASSERT, (int32_t)c, 0, false});
	} else if (c == '.') {
		add_range(r, '\n', '\n');
		emit(r, (inst){OP_SET, r->range.n - 1, r->range.n, true});
	} else if (c == '*' || c == '+' || c == '?') {
		bad(r, "there is nothing to repeat");
	} else {
		emit_char(r, c);
	}
}

/* The instructions from .. to-1 once more, at the end. */
static void again(regex *r, int32_t from, int32_t to)
{
	int32_t by = r->code.n - from;

	for (int32_t i = from; i < to; i++) {
		inst c = r->code.at[i];

		if (c.op == OP_SPLIT) {
			c.x += by;
			c.y += by;
		}
		emit(r, c);
	}
}

/* A number of "{m,n}"; -1: there is none. */
static int32_t times(regex *r)
{
	int32_t n = -1;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		n = (n < 0 ? 0 : n * 10) + *r->at++ - '0';
		if (n > MAX_TIMES)
			bad(r, "a repetition is more than 1000");
	}
	return n;
}

/* "{m}", "{m,}", "{m,n}"; false: it is none, so the brace is a character. */
static bool braces(regex *r, int32_t *least, int32_t *most)
{
	const uint8_t *back = r->at;

	if (!accept(r, '{'))
		return false;
	*least = *most = times(r);
	if (accept(r, ','))
		*most = r->at < r->end && *r->at == '}' ? -1 : times(r);
	if (*least >= 0 && accept(r, '}')) {
		if (*most >= 0 && *most < *least)
			bad(r, "a repetition is upside down");
		return true;
	}
	r->at = back;
	return false;
}

/*
 * The instructions from `from` on stand `least` to `most` times, -1: without limit.
 * The body is at `from`, where a hole for a split goes first.
 */
static void repeat(regex *r, int32_t from, int32_t least, int32_t most)
{
	int32_t to = r->code.n, split;
	int32_t rest = most < 0 ? 1 : most - least;

	if (least > 0) /* the first is there already: its hole does nothing */
		r->code.at[from] = (inst){OP_SPLIT, from + 1, from + 1, false};
	for (int32_t i = 1; i < least; i++)
		again(r, from, to);
	for (int32_t i = 0; i < rest; i++) {
		if (least > 0 || i > 0) {
			split = r->code.n;
			again(r, from, to);
		} else {
			split = from;
		}
		if (most < 0)
			emit(r, (inst){OP_SPLIT, split, split, false});
		r->code.at[split] = (inst){OP_SPLIT, split + 1, r->code.n, false};
	}
	if (least == 0 && rest == 0) /* not at all */
		r->code.at[from] = (inst){OP_SPLIT, to, to, false};
}

static void pieces(regex *r)
{
	while (r->at < r->end && *r->at != '|' && *r->at != ')') {
		int32_t from = emit(r, (inst){OP_SPLIT, 0, 0, false});
		int32_t least = 1, most = 1;
		bool some = true;

		r->code.at[from].x = r->code.at[from].y = from + 1;
		atom(r);
		if (accept(r, '*'))
			least = 0, most = -1;
		else if (accept(r, '+'))
			most = -1;
		else if (accept(r, '?'))
			least = 0;
		else
			some = braces(r, &least, &most);
		if (!some)
			continue;
		repeat(r, from, least, most);
		accept(r, '?'); /* as few as possible: the same as a whole */
		if (r->at < r->end && strchr("*+?", *r->at) != NULL)
			bad(r, "a repetition is repeated");
	}
}

static void alternatives(regex *r)
{
	int32_t from = emit(r, (inst){OP_SPLIT, 0, 0, false}), last = -1, end;

	if (++r->depth > MAX_DEPTH)
		bad(r, "groups are nested more than 200 deep");
	r->code.at[from].x = r->code.at[from].y = from + 1;
	pieces(r);
	while (accept(r, '|')) {
		/* behind each: a jump to the end, linked until that is known */
		last = emit(r, (inst){OP_SPLIT, last, last, false});
		r->code.at[from].y = r->code.n;
		from = emit(r, (inst){OP_SPLIT, 0, 0, false});
		r->code.at[from].x = r->code.at[from].y = from + 1;
		pieces(r);
	}
	for (end = r->code.n; last >= 0;) {
		int32_t before = r->code.at[last].x;

		r->code.at[last].x = r->code.at[last].y = end;
		last = before;
	}
	r->depth--;
}

/* ---- matching ---- */

typedef struct states {
	int32_t n, *at;
	int64_t *seen; /* by instruction: 1 + the last position that has it */
} states;

static bool is_word(uint32_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= 'a' && c <= 'z');
}

static bool holds(int32_t what, uint32_t before, uint32_t next)
{
	if (what == '^')
		return before == END;
	if (what == '$')
		return next == END;
	return (is_word(before) != is_word(next)) == (what == 'b');
}

/* Adds instruction i, and those that it goes on to without a character. */
static void add_state(const regex *r, states *s, int32_t *stack, int32_t i,
	int64_t position, uint32_t before, uint32_t next)
{
	int32_t n = 0;

	stack[n++] = i;
	while (n > 0) {
		const inst *c;

		i = stack[--n];
		c = &r->code.at[i];
		if (s->seen[i] == position + 1)
			continue;
		s->seen[i] = position + 1;
		if (c->op == OP_SET || c->op == OP_MATCH)
			s->at[s->n++] = i;
		else if (c->op == OP_SPLIT) {
			stack[n++] = c->y;
			stack[n++] = c->x;
		} else if (holds(c->x, before, next)) {
			stack[n++] = i + 1;
		}
	}
}

static bool has(const regex *r, const inst *c, uint32_t ch)
{
	for (int32_t i = c->x; i < c->y; i++)
		if (ch >= r->range.at[i].lo && ch <= r->range.at[i].hi)
			return !c->negated;
	return c->negated;
}

static bool is_end(const regex *r, const states *s)
{
	for (int32_t k = 0; k < s->n; k++)
		if (r->code.at[s->at[k]].op == OP_MATCH)
			return true;
	return false;
}

static bool matches(const regex *r, arena *a, onnx_bytes text)
{
	int32_t n = r->code.n, *stack = arena_array(a, int32_t, 2 * n + 2);
	states s[2];
	const uint8_t *at = text.at, *end = text.at + text.n;

	for (int k = 0; k < 2; k++)
		s[k] = (states){0, arena_array(a, int32_t, n + 1),
			arena_array(a, int64_t, n + 1)};
	for (int64_t i = 0;; i++) {
		states *now = &s[i % 2], *then = &s[(i + 1) % 2];
		const uint8_t *peek = at;
		uint32_t c = at < end ? onnx_utf8(&peek) : END, next;

		if (i == 0)
			add_state(r, now, stack, 0, i, END, c);
		if (c == END)
			break;
		at = peek;
		next = at < end ? onnx_utf8(&peek) : END;
		then->n = 0;
		for (int32_t k = 0; k < now->n; k++) {
			int32_t j = now->at[k];

			if (r->code.at[j].op == OP_SET &&
				has(r, &r->code.at[j], c))
				add_state(r, then, stack, j + 1, i + 1, c,
					next);
		}
		if (then->n == 0 || at == end)
			return is_end(r, then);
	}
	return is_end(r, &s[0]);
}

void onnx_regex_full_match(node *d)
{
	texts x = texts_in(d, 0);
	const char *pattern = on_text(d, "pattern", "");
	regex r = {.d = d, .a = d->x->a, .at = (const uint8_t *)pattern};
	uint8_t *out = arena_array(d->x->a, uint8_t, x.n + 1);
	arena *tmp = arena_child(d->x->a);

	r.end = r.at + strlen(pattern);
	on_string(d, pattern); /* it must be UTF-8 */
	alternatives(&r);
	if (r.at < r.end)
		bad(&r, "a group ends that does not begin");
	emit(&r, (inst){OP_MATCH, 0, 0, false});
	for (int64_t i = 0; i < x.n; i++) {
		onnx_bytes text = text_at(d, &x, i);

		texts_count(d, ((int64_t)text.n + 1) * r.code.n);
		out[i] = matches(&r, tmp, text);
		arena_clear(tmp);
	}
	arena_free(tmp);
	on_set(d, 0, on_constant(d, TN_BOOL, on_shape_of(d, on_in(d, 0)), out));
}
