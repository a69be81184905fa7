#!/bin/sh
# A plain shell job: reads a parameter, counts, leaves a file.
set -eu
echo "run $TRACKBED_RUN, attempt $TRACKBED_ATTEMPT"
n="$1"
i=0
while [ "$i" -lt "$n" ]; do
  i=$((i + 1))
  printf '\rcounting %d/%d' "$i" "$n"
  sleep 0.05
done
printf '\n'
echo "counted to $i" > "$TRACKBED_OUTPUT/count.txt"
