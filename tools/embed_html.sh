#!/bin/sh
# embed_html.sh FILE: the lines of the page of reports as C strings, and a
# NULL at the end.
set -eu
echo 'extern const char *const cli_report_page[];'
echo 'const char *const cli_report_page[] = {'
LC_ALL=C sed 's/[\\"?]/\\&/g; s/.*/"&\\n",/' "$1"
echo '0};'
