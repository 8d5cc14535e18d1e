#include "report/notebook_json.h"

#include "report/json.h"
#include "report/report_case.h"

json_t *world_json(const struct world *world)
{
	json_t *object = json_object();

	PUT(object, world, commit, branch, program, kernel, machine, redhand);
	return object;
}

static json_t *trials_json(const struct attempt *attempt)
{
	json_t *array = json_array();

	VEC_FOREACH (&attempt->trials, t) {
		json_t *object = json_object();

		PUT(object, t, command);
		json_add_rate(object, &t->rate);
		PUT(object, t, same_build);
		(void)json_array_append_new(array, object);
	}
	return array;
}

json_t *attempts_json(const struct notebook *notebook)
{
	json_t *array = json_array();

	VEC_FOREACH (&notebook->attempts, a) {
		json_t *object = json_object();

		PUT(object, a, id);
		set(object, "time_ms", json_integer(a->made_ms));
		PUT(object, a, text);
		set(object, "commit", json_text(a->world.commit));
		set(object, "branch", json_text(a->world.branch));
		set(object, "program", json_text(a->world.program));
		PUT(object, a, diff);
		set(object, "after_trial", count(a->after));
		set(object, "trials", trials_json(a));
		(void)json_array_append_new(array, object);
	}
	return array;
}

json_t *user_steps_json(const struct notebook *notebook)
{
	json_t *array = json_array();

	VEC_FOREACH (&notebook->steps, s) {
		json_t *object = json_object();

		PUT(object, s, id);
		set(object, "time_ms", json_integer(s->made_ms));
		PUT(object, s, text);
		set(object, "done_ms", s->done_ms != 0 ? json_integer(s->done_ms) : json_null());
		(void)json_array_append_new(array, object);
	}
	return array;
}

json_t *relations_json(const struct notebook *notebook)
{
	json_t *array = json_array();

	VEC_FOREACH (&notebook->relations, r) {
		json_t *object = json_object();

		set(object, "case", json_text(r->dir));
		PUT(object, r, common);
		(void)json_array_append_new(array, object);
	}
	return array;
}

json_t *surroundings_json(const struct notebook *notebook)
{
	json_t *array = json_array();

	VEC_FOREACH (&notebook->surroundings, s) {
		json_t *object = world_json(&s->world);

		set(object, "since_ms", json_integer(s->seen_ms));
		(void)json_array_append_new(array, object);
	}
	return array;
}

void report_relation_json(const char *case_dir, const struct relation *relation, FILE *out)
{
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/case/2"));
	set(object, "case", json_text(case_dir));
	set(object, "related", json_text(relation->dir));
	PUT(object, relation, common);
	json_print(object, out);
}
