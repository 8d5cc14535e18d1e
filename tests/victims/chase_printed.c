/*
 * A ledger prints a field of an account that was closed, and only then notices that it is not what
 * it should be. "text", "half" and "register": it comes out as a text, as a number of four bytes,
 * or not at all, and stands in a register when the program ends itself.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

#define NAME "an account of the house"

struct account {
	long balance;
	int32_t number, branch;
	char name[64];
};

static struct account *accounts[24];

APART static struct account *account_open(int i)
{
	struct account *account = malloc(sizeof(*account));

	if (!account)
		exit(3);
	account->balance = 100 + i;
	account->number = i;
	account->branch = 7;
	strcpy(account->name, NAME);
	return account;
}

/* The ledger still has it. */
APART static void account_close(int i)
{
	free(accounts[i]);
}

APART static void ledger_print(const char *how, int i)
{
	const struct account *account = accounts[i];

	if (strcmp(how, "text") == 0) {
		printf("account %s\n", account->name);
		if (strncmp(account->name, NAME, strlen(NAME)) != 0)
			exit(1);
	} else if (strcmp(how, "half") == 0) {
		fprintf(stderr, "branch %d\n", account->branch);
		if (account->branch != 7)
			exit(1);
	} else if (strcmp(how, "register") == 0) {
		register long balance __asm__("rbx") = account->balance;

		__asm__ volatile("" : "+r"(balance));
		if (balance != 100 + i)
			abort();
		__asm__ volatile("" : : "r"(balance));
	} else {
		long balance = account->balance;

		printf("balance %ld\n", balance);
		if (balance != 100 + i)
			abort();
	}
}

int main(int argc, char **argv)
{
	struct timespec now;
	void *other[40];

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "freer chase_printed.c:account_close\n"
		   "allocator chase_printed.c:account_open\n");
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (int i = 0; i < 24; i++)
		accounts[i] = account_open(i);
	if (now.tv_nsec / 1000 % 2 == 0)
		account_close(11);
	for (int i = 0; i < 40; i++) {
		other[i] = malloc(60 + 4 * (size_t)i);
		memset(other[i], 1, 60 + 4 * (size_t)i);
	}
	for (int i = 0; i < 40; i += 2)
		free(other[i]);
	ledger_print(argc > 1 ? argv[1] : "", 11);
	return 0;
}
