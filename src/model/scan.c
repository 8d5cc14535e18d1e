#include "model/scan.h"

bool store_fit(int64_t offset, uint64_t width, int64_t store_offset, uint64_t store_width,
	       enum store_fit *ret)
{
	/* Displacements have 32 bits and widths are small: nothing overflows. */
	int64_t end = offset + (int64_t)(width ? width : 1);
	int64_t store_end = store_offset + (int64_t)store_width;

	if (store_width == 0) {
		*ret = FIT_ANY;
		return store_offset < end;
	}
	if (store_end <= offset || store_offset >= end)
		return false;
	if (store_offset < offset)
		*ret = FIT_COVERS;
	else if (width == 0)
		*ret = FIT_BEGINS;
	else if (store_end > end)
		*ret = FIT_WIDER;
	else
		*ret = store_width == width ? FIT_EXACT : FIT_NARROWER;
	return true;
}

const char *store_fit_name(enum store_fit fit)
{
	static const char *const names[] = {
		[FIT_BEGINS] = "begins", [FIT_EXACT] = "exact",	  [FIT_NARROWER] = "narrower",
		[FIT_WIDER] = "wider",	 [FIT_COVERS] = "covers", [FIT_ANY] = "any",
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
	VEC_FOREACH (&report->regions, region)
		mem_free(region->name);
	VEC_DEINIT(&report->regions);
	mem_free(report->subject);
	mem_free(report->global);
	strv_deinit(&report->notes);
}
