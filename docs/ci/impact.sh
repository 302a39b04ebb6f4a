#!/bin/sh
# What a change does to documents, for each config that it touches. Copy it to ci/impact.sh of your repository.
#
#     sh ci/impact.sh BASE
#
# BASE: the branch or commit that the change is to go into. Compared is with where the change left it.
# Writes impact/NAME/sheet.html (and .md, .json) for each config and impact/pull-request.md for all of them.
# Ends with 0 within all bounds, 1 where one is broken, another number where something could not be judged.
#
#     IMPACT_CONFIGS  what is judged             configs/*.yaml
#     IMPACT_ALSO     folders that all configs   lists
#                     depend on
#     IMPACT_SAMPLE   documents of your own      the sample that ships
#     IMPACT_ROOT     what is kept for the       .impact
#                     next time; cache it
#     CORPUSMILL      the command                corpusmill
set -eu
into=${1:?"usage: impact.sh BASE"}
root=${IMPACT_ROOT:-.impact}
told=impact/pull-request.md
rm -rf impact
mkdir -p impact
: >"$told"

if ! base=$(git merge-base "$into" HEAD); then
  echo "impact: $into has no commit in common with this one here. Fetch it, and the whole history (depth 0)." >&2
  exit 2
fi
status=0
for config in ${IMPACT_CONFIGS:-configs/*.yaml}; do
  name=$(basename "$config" .yaml)
  if ! git cat-file -e "$base:$config" 2>/dev/null; then
    echo "\`$config\` is new: there is nothing to compare it with." | tee -a "$told"
    continue
  fi
  # shellcheck disable=SC2086  # several folders
  if git diff --quiet "$base" -- "$config" ${IMPACT_ALSO:-lists}; then
    echo "\`$config\` is as it was." | tee -a "$told"
    continue
  fi
  code=0
  ${CORPUSMILL:-corpusmill} impact "$config" --base "$base" ${IMPACT_SAMPLE:+--sample "$IMPACT_SAMPLE"} \
    --root "$root" --output "impact/$name" --quiet || code=$?
  if [ -f "impact/$name/pull-request.md" ]; then
    cat "impact/$name/pull-request.md" >>"$told"
  fi
  if [ "$code" -gt 1 ] || { [ "$code" -eq 1 ] && [ ! -f "impact/$name/pull-request.md" ]; }; then
    echo "\`$config\` could not be judged: see the log." | tee -a "$told"
    code=3
  fi
  if [ "$code" -gt "$status" ]; then
    status=$code
  fi
done
exit "$status"
