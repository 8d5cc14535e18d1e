/*
 * Two hundred accounts of one kind are alive. One of them, another in every run, is given a number
 * where it keeps a pointer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

#define ACCOUNTS 200

struct account {
	long number;
	long *balance;
	long notes[4];
};

static long balances[ACCOUNTS];

APART static struct account *account_open(int number)
{
	struct account *account = malloc(sizeof(*account));

	if (!account)
		exit(3);
	account->number = number;
	account->balance = &balances[number];
	return account;
}

APART static void account_note(struct account *account, int note, long value)
{
	((long *)account)[2 + note] = value;
}

APART static long account_balance(const struct account *account)
{
	return *account->balance;
}

int main(void)
{
	struct account *accounts[ACCOUNTS];
	struct timespec now;
	long sum = 0;

	tell_truth("class narrow-write\n"
		   "writer chase_crowd.c:account_note\n"
		   "allocator chase_crowd.c:account_open\n");
	clock_gettime(CLOCK_REALTIME, &now);
	srand((unsigned int)(now.tv_nsec / 1000));
	for (int i = 0; i < ACCOUNTS; i++)
		accounts[i] = account_open(i);
	for (int i = 0; i < 400; i++)
		account_note(accounts[rand() % ACCOUNTS], rand() % 4, i);
	account_note(accounts[rand() % ACCOUNTS], -1, 0x4242);
	for (int i = 0; i < ACCOUNTS; i++)
		sum += account_balance(accounts[i]);
	printf("%ld\n", sum);
	return 0;
}
