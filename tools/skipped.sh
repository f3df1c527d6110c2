#!/bin/sh
# skipped.sh REASON...: stands in for a test that cannot run here. Prints why,
# and exits with 77, which meson counts as a skip; tools/check.sh prints the
# reason of each.
echo "skipped: $*"
exit 77
