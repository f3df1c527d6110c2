/*
 * decision.c: records and prints the decisions of a schedule.
 */
#include "schedule/decision.h"
#include "schedule/local.h"

static const struct {
	const char *word, *subject;
	bool both;
} passes[] = {
#define PASS(id, word, subject, both) {word, subject, both},
#include "schedule/decision.def"
};

static const struct {
	const char *name;
	decide_pass pass;
	bool taken;
	const char *sentence;
} kinds[] = {
#define DECISION(id, pass, taken, sentence) \
	{#id, DECIDE_PASS_##pass, taken, sentence},
#include "schedule/decision.def"
};

const char *decide_name(int32_t kind)
{
	return kinds[kind].name;
}

decide_pass decide_pass_of(int32_t kind)
{
	return kinds[kind].pass;
}

static bool is_about(
	const loop_decision *d, decide_pass pass, int32_t of, int32_t with)
{
	return kinds[d->kind].pass == pass && d->of == of &&
	       (!passes[pass].both || d->with == with);
}

void loop_decide(loop_kernel *k, decide_kind kind, int32_t of, int32_t with,
	int64_t a, int64_t b)
{
	const loop_decision new = {kind, of, with, a, b};

	for (int32_t i = 0; i < k->decision.n; i++)
		if (is_about(&k->decision.at[i], kinds[kind].pass, of, with)) {
			k->decision.at[i] = new;
			return;
		}
	*vec_push(k->a, &k->decision) = new;
}

const loop_decision *loop_decided(
	const loop_kernel *k, decide_pass pass, int32_t of)
{
	for (int32_t i = k->decision.n - 1; i >= 0; i--)
		if (kinds[k->decision.at[i].kind].pass == pass &&
			(of < 0 || k->decision.at[i].of == of))
			return &k->decision.at[i];
	return NULL;
}

/* ---- text ---- */

static void put_eqn(str *out, const loop_kernel *k, int32_t i)
{
	if (i >= 0 && i < k->n_eqns)
		str_printf(out, "%s#%d", loop_label(&k->eqn[i]), i);
}

static void put_var(str *out, const loop_kernel *k, int32_t v)
{
	if (v >= 0 && v < k->n_vars)
		str_add(out, k->var[v].name);
}

static void put_tensor(str *out, const loop_kernel *k, int32_t t)
{
	str_add(out, t >= 0 && t < k->s->tensor.n ? k->s->tensor.at[t].name
						  : "a factor");
}

static void put(str *out, const loop_kernel *k, const char *text,
	const loop_decision *d)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (*p != '$') {
			str_addc(out, *p);
			continue;
		}
		p++;
		if (*p == 'E' || *p == 'e')
			put_eqn(out, k, *p == 'E' ? d->of : d->with);
		else if (*p == 'V' || *p == 'v')
			put_var(out, k, *p == 'V' ? d->of : d->with);
		else if (*p == 'T' || *p == 't')
			put_tensor(out, k, *p == 'T' ? d->of : d->with);
		else if (*p == 'P')
			str_printf(out, "%d", d->of);
		else
			str_printf(out, "%lld",
				(long long)(*p == 'a' ? d->a : d->b));
	}
}

void decide_subject(str *out, loop_kernel *k, const loop_decision *d)
{
	put(out, k, passes[kinds[d->kind].pass].subject, d);
}

void decide_sentence(str *out, loop_kernel *k, const loop_decision *d)
{
	put(out, k, kinds[d->kind].sentence, d);
}

void loop_text_decisions(str *out, loop_kernel *k)
{
	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];

		str_printf(out, "// %s ", passes[kinds[d->kind].pass].word);
		decide_subject(out, k, d);
		str_add(out, kinds[d->kind].taken ? ": taken: " : ": declined: ");
		decide_sentence(out, k, d);
		str_addc(out, '\n');
	}
}

void loop_json_decisions(str *out, loop_kernel *k)
{
	arena *tmp = arena_child(k->a);

	str_addc(out, '[');
	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];
		str subject = str_new(tmp), why = str_new(tmp);

		decide_subject(&subject, k, d);
		decide_sentence(&why, k, d);
		str_printf(out, "%s{\"pass\":\"%s\",\"of\":", i > 0 ? "," : "",
			passes[kinds[d->kind].pass].word);
		str_json(out, subject.at);
		str_printf(out, ",\"taken\":%s,\"why\":",
			kinds[d->kind].taken ? "true" : "false");
		str_json(out, why.at);
		str_printf(out, ",\"witness\":[%lld,%lld]}", (long long)d->a,
			(long long)d->b);
	}
	str_addc(out, ']');
	arena_free(tmp);
}
