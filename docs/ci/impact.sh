#!/bin/sh
# What a change does to documents, for each config that it touches. Copy it to ci/impact.sh of your repository.
#
#     sh ci/impact.sh BASE
#
# BASE: the branch or commit that the change is to go into. Compared is with where the change left it.
# Writes impact/NAME/sheet.html (and .md, .json) for each config and impact/pull-request.md for all of them.
# Ends with 0 within all bounds, 1 where one is broken, another number where something could not be judged.
#
#     IMPACT_CONFIGS  what is judged             configs/*.yaml configs/*.yml
#     IMPACT_ALSO     folders that all configs   lists
#                     depend on
#     IMPACT_SAMPLE   documents of your own      the sample that ships
#     IMPACT_ROOT     what is kept for the       .impact
#                     next time; cache it
#     IMPACT_OUTPUT   the folder of the sheets   impact
#     IMPACT_URL      where the sheets are then  none
#                     found: the page of the job
#     CORPUSMILL      the command                corpusmill
set -eu
into=${1:?"usage: impact.sh BASE"}
root=${IMPACT_ROOT:-.impact}
out=${IMPACT_OUTPUT:-impact}
told=$out/pull-request.md
patterns=${IMPACT_CONFIGS:-configs/*.yaml configs/*.yml}

say() {
  printf '%s\n' "$1" | tee -a "$told"
}

# A commit as the base, but with a file by the name that it has now: only so can a renamed config be compared with itself.
# No branch, index or file of yours is touched.
base_with_name() { # old name, new name
  index=$(mktemp -d)
  GIT_INDEX_FILE=$index/index git read-tree "$base"
  blob=$(git rev-parse "$base:$1")
  GIT_INDEX_FILE=$index/index git update-index --add --cacheinfo "100644,$blob,$2"
  tree=$(GIT_INDEX_FILE=$index/index git write-tree)
  rm -rf "$index"
  GIT_AUTHOR_NAME=impact GIT_AUTHOR_EMAIL=impact@localhost GIT_COMMITTER_NAME=impact GIT_COMMITTER_EMAIL=impact@localhost \
    git commit-tree "$tree" -p "$base" -m "$1 by the name $2"
}

# The short text; its links lead to files that lie beside it, which a comment has not.
short_text() { # name
  awk -v name="$1" '{ if (/^Sample /) { gsub(/\]\(sheet\.html\)/, "]"); gsub(/\]\(sheet\.md\)/, "]")
    gsub(/\[sheet\.html\]/, "`" name "/sheet.html`"); gsub(/\[sheet\.md\]/, "`" name "/sheet.md`") } print }' "$out/$1/pull-request.md"
}

if [ -n "$(ls -A "$out" 2>/dev/null)" ] && { [ ! -f "$told" ] || [ -n "$(git ls-files -- "$out")" ]; }; then
  echo "impact: the folder $out holds other things than sheets. Name another for these with IMPACT_OUTPUT." >&2
  exit 2
fi
rm -rf "$out"
mkdir -p "$out"
: >"$told"

if ! base=$(git merge-base "$into" HEAD); then
  echo "impact: $into has no commit in common with this one here. Fetch it, and the whole history (depth 0)." >&2
  exit 2
fi
# R, the old name and the new one; or another letter and a name.
changed=$(git -c core.quotePath=false diff -M --name-status "$base" --)
set -f # a pattern is only compared with names here
gone=
gone_count=0
for config in $(printf '%s\n' "$changed" | awk -F '\t' '$1 == "D" { print $2 }'); do
  for pattern in $patterns; do
    # shellcheck disable=SC2254  # a pattern
    case $config in $pattern)
      say "\`$config\` is gone: its bounds hold nothing any more."
      gone=$config
      gone_count=$((gone_count + 1))
      break
      ;;
    esac
  done
done
set +f
status=0
configs=$gone_count
for config in $patterns; do
  if [ ! -f "$config" ]; then
    if [ -n "${IMPACT_CONFIGS:-}" ] && ! git cat-file -e "$base:$config" 2>/dev/null; then
      echo "impact: there is no config $config, neither here nor at $base." >&2
      exit 2
    fi
    continue
  fi
  configs=$((configs + 1))
  name=$(basename "$config")
  name=${name%.*}
  while [ -e "$out/$name" ]; do
    name=${name}_ # two configs of one name in two folders
  done
  from=$base
  if ! git cat-file -e "$base:$config" 2>/dev/null; then
    old=$(printf '%s\n' "$changed" | CONFIG=$config awk -F '\t' '/^R/ && $3 == ENVIRON["CONFIG"] { print $2 }')
    if [ -z "$old" ] && [ "$gone_count" -gt 1 ]; then
      say "\`$config\` could not be judged: it is new, and may be each of the $gone_count that are gone. Rename in a change of its own."
      status=3
      continue
    fi
    old=${old:-$gone} # rewritten and renamed at once, which git sees as two files
    if [ -z "$old" ]; then
      say "\`$config\` is new: there is nothing to compare it with, so no bound holds it."
      continue
    fi
    say "\`$config\` was \`$old\`."
    from=$(base_with_name "$old" "$config")
  # shellcheck disable=SC2086  # several folders
  elif git diff --quiet "$base" -- "$config" ${IMPACT_ALSO:-lists}; then
    say "\`$config\` is as it was."
    continue
  fi
  mkdir -p "$out/$name"
  code=0
  ${CORPUSMILL:-corpusmill} impact "$config" --base "$from" ${IMPACT_SAMPLE:+--sample "$IMPACT_SAMPLE"} \
    --root "$root" --output "$out/$name" --quiet || code=$?
  if [ -f "$out/$name/pull-request.md" ]; then
    short_text "$name" >>"$told"
  fi
  if [ "$code" -gt 1 ] || { [ "$code" -eq 1 ] && [ ! -f "$out/$name/pull-request.md" ]; }; then
    say "\`$config\` could not be judged: see the log."
    code=3
  fi
  if [ "$code" -gt "$status" ]; then
    status=$code
  fi
done

if [ "$configs" -eq 0 ]; then
  echo "impact: there is no config $patterns here: name yours with IMPACT_CONFIGS." >&2
  exit 2
fi
if [ -n "${IMPACT_URL:-}" ]; then
  printf '\nThe sheets: %s\n' "$IMPACT_URL" >>"$told"
fi
exit "$status"
