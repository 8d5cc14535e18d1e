#include "model/certificate.h"

const char *const expectation_names[] = {
	[EXPECT_FAILS] = "fails", [EXPECT_FIXED] = "fixed", NULL
};

void certificate_deinit(struct certificate *certificate)
{
	VEC_FREE(&certificate->other_failures, other, mem_free(other->summary));
	said_list_deinit(&certificate->notes);
	said_deinit(&certificate->sentence);
}
