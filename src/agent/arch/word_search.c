#include "agent/arch/word_search.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

#define OSXSAVE (1u << 27) /* CPUID leaf 1, ecx */
#define AVX2 (1u << 5)	   /* CPUID leaf 7, ebx */
#define YMM_STATE 6u	   /* XCR0: the kernel saves xmm and ymm */

static size_t find_plain(const uint64_t *words, size_t from, size_t count, uint64_t low,
			 uint64_t high)
{
	uint64_t span = high - low;

	for (; from < count; from++)
		if (words[from] - low < span)
			break;
	return from;
}

/* Unsigned comparison by the signed one, with the top bit of both sides turned. Sixteen words at a
 * time: hits are rare. */
__attribute__((target("avx2"))) static size_t find_avx2(const uint64_t *words, size_t from,
							size_t count, uint64_t low, uint64_t high)
{
	const __m256i top = _mm256_set1_epi64x(INT64_MIN);
	const __m256i start = _mm256_set1_epi64x((long long)low);
	const __m256i span = _mm256_set1_epi64x((long long)((high - low) ^ (1ull << 63)));

	for (; from + 16 <= count; from += 16) {
		__m256i hit = _mm256_setzero_si256();
		unsigned i;

		for (i = 0; i < 16; i += 4) {
			__m256i at = _mm256_loadu_si256((const __m256i *)(words + from + i));

			at = _mm256_xor_si256(_mm256_sub_epi64(at, start), top);
			hit = _mm256_or_si256(hit, _mm256_cmpgt_epi64(span, at));
		}
		if (!_mm256_testz_si256(hit, hit))
			break;
	}
	return find_plain(words, from, count, low, high);
}

static bool has_avx2(void)
{
	unsigned a, b, c, d, xcr0, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
	if ((xcr0 & YMM_STATE) != YMM_STATE)
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & AVX2);
}

size_t words_find(const uint64_t *words, size_t from, size_t count, uint64_t low, uint64_t high)
{
	static int8_t vector = -1; /* atomic: not asked yet */
	int8_t known = __atomic_load_n(&vector, __ATOMIC_RELAXED);

	if (known < 0) {
		known = has_avx2() ? 1 : 0;
		__atomic_store_n(&vector, known, __ATOMIC_RELAXED);
	}
	return known ? find_avx2(words, from, count, low, high)
		     : find_plain(words, from, count, low, high);
}
