#!/bin/sh
# Tests of a CMake project, one after another. Dies as the first test that dies by a signal.
mark() { [ -z "$REDHAND_MARKS" ] || printf '%s\n' "$1" >>"$REDHAND_MARKS"; }
failed=0
# run NUMBER NAME DIRECTORY WILL_FAIL SKIP_CODE COMMAND…
run() {
	number=$1 name=$2 dir=$3 will_fail=$4 skip=$5
	shift 5
	mark "+ $number"
	echo "REDHAND> $name"
	(cd "$dir" && exec "$@")
	status=$?
	[ $status -le 128 ] || kill -$((status - 128)) $$ 2>/dev/null
	[ "$status" != "$skip" ] || status=0
	[ "$will_fail" = 0 ] || status=$((status == 0))
	if [ $status = 0 ]; then mark "= $number"; else mark "- $number"; failed=1; fi
}
finish() {
	exit $failed
}
