/*
 * Meters. meter_read() stores a reading of 64 bits into a field of 32, and the lower half of the
 * pointer behind it is gone.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct tariff {
	long price;
	long used;
};

struct meter {
	uint32_t number;
	uint32_t reading;
	struct tariff *tariff;
	struct meter *next;
};

static struct meter *meters;

APART static struct tariff *tariff_new(long price)
{
	struct tariff *tariff = calloc(1, sizeof(*tariff));

	if (!tariff)
		exit(3);
	tariff->price = price;
	return tariff;
}

APART static struct meter *meter_new(uint32_t number, struct tariff *tariff)
{
	struct meter *meter = malloc(sizeof(*meter));

	if (!meter)
		exit(3);
	meter->number = number;
	meter->reading = 0;
	meter->tariff = tariff;
	meter->next = meters;
	meters = meter;
	return meter;
}

APART static void meter_set(struct meter *meter, uint64_t reading)
{
	meter->reading = (uint32_t)reading;
}

APART static void meter_read(struct meter *meter, uint64_t pulses)
{
	uint64_t reading = pulses / 1000;

	memcpy(&meter->reading, &reading, sizeof(reading));
}

APART static long meters_bill(void)
{
	long sum = 0;

	for (struct meter *meter = meters; meter; meter = meter->next) {
		meter->tariff->used++;
		sum += meter->reading * meter->tariff->price;
	}
	return sum;
}

int main(void)
{
	struct tariff *tariffs[3] = { tariff_new(7), tariff_new(9), tariff_new(11) };
	struct meter *all[160];

	tell_truth("class wide-write\n"
		   "writer chase_wide_write.c:meter_read\n"
		   "allocator chase_wide_write.c:meter_new\n");
	for (uint32_t i = 0; i < 160; i++)
		all[i] = meter_new(i, tariffs[i % 3]);
	for (uint32_t i = 0; i < 160; i++)
		meter_set(all[i], 1000 + i);
	printf("sum %ld\n", meters_bill());
	meter_read(all[113], 123456789);
	printf("sum %ld\n", meters_bill());
	return 0;
}
