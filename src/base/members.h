#pragma once

/* What `row` makes of each of up to 16 members, separated by commas:
 * FOR_MEMBERS(ROW, x, a, b) is ROW(x, a), ROW(x, b). */
#define FOR_MEMBERS(row, of, ...)                                                             \
	MEMBERS_PICK(__VA_ARGS__, MEMBERS_16, MEMBERS_15, MEMBERS_14, MEMBERS_13, MEMBERS_12, \
		     MEMBERS_11, MEMBERS_10, MEMBERS_9, MEMBERS_8, MEMBERS_7, MEMBERS_6,      \
		     MEMBERS_5, MEMBERS_4, MEMBERS_3, MEMBERS_2, MEMBERS_1)                   \
	(row, of, __VA_ARGS__)
#define MEMBERS_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, members, ...) members
#define MEMBERS_1(row, of, m) row(of, m)
#define MEMBERS_2(row, of, m, ...) row(of, m), MEMBERS_1(row, of, __VA_ARGS__)
#define MEMBERS_3(row, of, m, ...) row(of, m), MEMBERS_2(row, of, __VA_ARGS__)
#define MEMBERS_4(row, of, m, ...) row(of, m), MEMBERS_3(row, of, __VA_ARGS__)
#define MEMBERS_5(row, of, m, ...) row(of, m), MEMBERS_4(row, of, __VA_ARGS__)
#define MEMBERS_6(row, of, m, ...) row(of, m), MEMBERS_5(row, of, __VA_ARGS__)
#define MEMBERS_7(row, of, m, ...) row(of, m), MEMBERS_6(row, of, __VA_ARGS__)
#define MEMBERS_8(row, of, m, ...) row(of, m), MEMBERS_7(row, of, __VA_ARGS__)
#define MEMBERS_9(row, of, m, ...) row(of, m), MEMBERS_8(row, of, __VA_ARGS__)
#define MEMBERS_10(row, of, m, ...) row(of, m), MEMBERS_9(row, of, __VA_ARGS__)
#define MEMBERS_11(row, of, m, ...) row(of, m), MEMBERS_10(row, of, __VA_ARGS__)
#define MEMBERS_12(row, of, m, ...) row(of, m), MEMBERS_11(row, of, __VA_ARGS__)
#define MEMBERS_13(row, of, m, ...) row(of, m), MEMBERS_12(row, of, __VA_ARGS__)
#define MEMBERS_14(row, of, m, ...) row(of, m), MEMBERS_13(row, of, __VA_ARGS__)
#define MEMBERS_15(row, of, m, ...) row(of, m), MEMBERS_14(row, of, __VA_ARGS__)
#define MEMBERS_16(row, of, m, ...) row(of, m), MEMBERS_15(row, of, __VA_ARGS__)
