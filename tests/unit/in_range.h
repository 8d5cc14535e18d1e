/*
 * cmocka 2.0 has a name for each kind of number instead of assert_in_range(), and warns of that
 * one.
 */
#pragma once

#ifndef assert_uint_in_range
#define assert_uint_in_range assert_in_range
#endif
