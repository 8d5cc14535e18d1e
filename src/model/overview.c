#include "model/overview.h"

#include <string.h>

static void series_overview_deinit(struct series_overview *series)
{
	mem_free(series->command);
	strv_deinit(&series->program);
	VEC_FREE(&series->signatures, signature, mem_free(signature->summary));
	VEC_FREE(&series->arms, arm, mem_free(arm->name));
}

void case_overview_deinit(struct case_overview *overview)
{
	VEC_FREE(&overview->series, series, series_overview_deinit(series));
	notebook_deinit(&overview->notebook);
	minimal_list_deinit(&overview->minimal);
	verdict_deinit(&overview->verdict);
	decision_list_deinit(&overview->decisions);
	choice_list_deinit(&overview->choices);
	VEC_FREE(&overview->sightings, sighting, said_deinit(&sighting->text));
}

bool command_has_rate(const char *command)
{
	return strcmp(command, "sentinel") != 0 && strcmp(command, "minimize") != 0 &&
	       strcmp(command, "bisect") != 0;
}

bool command_is_plain(const char *command)
{
	return strcmp(command, "repro") == 0 || strcmp(command, "hunt") == 0;
}

const struct series_overview *overview_latest(const struct case_overview *overview)
{
	const struct series_overview *latest = NULL;

	for (size_t i = overview->series.count; i > 0; i--) {
		const struct series_overview *series = &overview->series.items[i - 1];

		if (!series->intermittent || !command_has_rate(series->command))
			continue;
		if (command_is_plain(series->command))
			return series;
		if (!latest)
			latest = series;
	}
	return latest;
}

void case_lines_deinit(struct case_lines *lines)
{
	VEC_FOREACH (&lines->list, line) {
		mem_free(line->dir);
		mem_free(line->trouble);
		case_overview_deinit(&line->overview);
	}
	VEC_DEINIT(&lines->list);
}
