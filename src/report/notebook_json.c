#include "report/notebook_json.h"

#include "report/json.h"
#include "report/report_case.h"

json_t *world_json(const struct world *world)
{
	return OBJECT(MEMBERS(world, commit, branch, program, kernel, machine, redhand));
}

json_t *notebook_json(const struct notebook *n)
{
	return OBJECT(
		KEY("attempts",
		    EACH(&n->attempts, a,
			 OBJECT(MEMBERS(a, id), KEY("time_ms", a->made_ms), MEMBERS(a, text),
				MEMBERS(&a->world, commit, branch, program), MEMBERS(a, diff),
				KEY("after_trial", a->after),
				KEY("trials", EACH(&a->trials, t,
						   OBJECT(MEMBERS(t, command), RATE(&t->rate),
							  MEMBERS(t, same_build))))))),
		KEY("steps", EACH(&n->steps, s,
				  OBJECT(MEMBERS(s, id), KEY("time_ms", s->made_ms),
					 MEMBERS(s, text), KEY("done_ms", UNLESS_0(s->done_ms))))),
		KEY("related",
		    EACH(&n->relations, r, OBJECT(KEY("case", r->dir), MEMBERS(r, common)))),
		KEY("surroundings",
		    EACH(&n->surroundings, s,
			 OBJECT(ALL_OF(world_json(&s->world)), KEY("since_ms", s->seen_ms)))));
}

void report_relation_json(const char *case_dir, const struct relation *relation, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/case/2"), KEY("case", case_dir),
			  KEY("related", relation->dir), MEMBERS(relation, common)),
		   out);
}
