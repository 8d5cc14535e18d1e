#include "search/minimize/rate_grid.h"

#include <math.h>
#include <pthread.h>

static const struct {
	double factor, prior;
} drifts[RATE_FACTORS] = {
	{ 0.33, 0.03 }, { 0.5, 0.07 }, { 0.71, 0.1 }, { 1.0, 0.6 },
	{ 1.41, 0.1 },	{ 2.0, 0.07 }, { 3.0, 0.03 },
};

static const double rate_least = 0.0006, rate_most = 0.98;

double rate_entropy(double x)
{
	return x <= 0 || x >= 1 ? 0 : -x * log(x) - (1 - x) * log1p(-x);
}

static struct rate_grid the_grid;

static void grid_fill(void)
{
	struct rate_grid *grid = &the_grid;
	double step = pow(rate_most / rate_least, 1.0 / (RATE_LEVELS - 1));
	double sum = 0;

	for (int level = 0; level < RATE_LEVELS; level++) {
		double full = rate_least * pow(step, level);

		for (int f = 0; f < RATE_FACTORS; f++) {
			int cell = level * RATE_FACTORS + f;

			/* Uniform in p, on a logarithmic grid: times p. */
			grid->log_prior[cell] = drifts[f].prior * full;
			sum += grid->log_prior[cell];
			for (int size = 0; size < RATE_SIZES; size++) {
				double left = (double)size / (RATE_SIZES - 1);
				double hit = full * pow(drifts[f].factor, 1 - left);

				if (hit > rate_most)
					hit = rate_most;
				grid->hit[size][cell] = hit;
				grid->log_hit[size][cell] = log(hit);
				grid->log_miss[size][cell] = log1p(-hit);
			}
		}
	}
	for (int cell = 0; cell < RATE_CELLS; cell++)
		grid->log_prior[cell] = log(grid->log_prior[cell] / sum);
}

const struct rate_grid *rate_grid(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, grid_fill);
	return &the_grid;
}

size_t rate_size(size_t size, size_t full)
{
	return full ? (size * (RATE_SIZES - 1) + full / 2) / full : 0;
}

double rate_information(double rate, double q)
{
	return rate_entropy(rate * q) - q * rate_entropy(rate);
}

double rate_best_q(double rate)
{
	return 1 / (rate * (1 + exp(rate_entropy(rate) / rate)));
}
