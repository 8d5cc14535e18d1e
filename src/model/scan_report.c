#include "model/scan_report.h"

bool store_fit(int64_t offset, uint64_t width, int64_t store_offset, uint64_t store_width,
	       enum scan_fit *ret)
{
	/* Displacements have 32 bits and widths are small: nothing overflows. */
	int64_t end = offset + (int64_t)(width ? width : 1);
	int64_t store_end = store_offset + (int64_t)store_width;

	if (store_width == 0) {
		*ret = SCAN_FIT_ANY;
		return store_offset < end;
	}
	if (store_end <= offset || store_offset >= end)
		return false;
	if (store_offset < offset)
		*ret = SCAN_FIT_COVERS;
	else if (width == 0)
		*ret = SCAN_FIT_BEGINS;
	else if (store_end > end)
		*ret = SCAN_FIT_WIDER;
	else
		*ret = store_width == width ? SCAN_FIT_EXACT : SCAN_FIT_NARROWER;
	return true;
}

const char *scan_fit_name(enum scan_fit fit)
{
	static const char *const names[] = {
		[SCAN_FIT_BEGINS] = "begins",	  [SCAN_FIT_EXACT] = "exact",
		[SCAN_FIT_NARROWER] = "narrower", [SCAN_FIT_WIDER] = "wider",
		[SCAN_FIT_COVERS] = "covers",	  [SCAN_FIT_ANY] = "any",
	};

	return names[fit];
}

const char *scan_match_name(enum scan_match match)
{
	static const char *const names[] = {
		[SCAN_STORE] = "store",
		[SCAN_IMMEDIATE] = "immediate",
		[SCAN_REFERENCE] = "reference",
	};

	return names[match];
}

void scan_report_deinit(struct scan_report *report)
{
	VEC_FOREACH (&report->hits, hit) {
		mem_free(hit->instruction);
		stack_deinit(&hit->frames);
	}
	VEC_DEINIT(&report->hits);
	VEC_FREE(&report->regions, region, mem_free(region->name));
	mem_free(report->subject);
	mem_free(report->global);
	said_list_deinit(&report->notes);
}
