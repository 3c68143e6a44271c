#!/usr/bin/env bash
# Dumps the databases of the service and of Temporal while both run: deploy/backup.sh FOLDER
#
# FOLDER must not exist. It appears when the backup is complete. Needs bash, psql and pg_dump of the server's major version or
# newer, and the variables of databases.sh. Secrets are not part of it (docs/backup.md).
set -euo pipefail
program=backup
. "$(dirname "$0")/databases.sh"

[ "$#" = 1 ] || fail 'usage: deploy/backup.sh FOLDER'
folder="$1"
[ ! -e "$folder" ] || fail "$folder exists: name a new folder"
read_databases
umask 077
work="$folder.incomplete-$$"
mkdir -p "$(dirname "$folder")"
mkdir "$work"
pipes="$(mktemp -d)"
sessions=()
end() {
  for pid in "${sessions[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$pipes" "$work"
}
trap end EXIT

# open_snapshot INDEX: opens a transaction in a session of its own, which ends with this script, and reads its snapshot.
open_snapshot() {
  local name="${names[$1]}"
  mkfifo "$pipes/$name.in" "$pipes/$name.out"
  on "${urls[$1]}" psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 \
    <"$pipes/$name.in" >"$pipes/$name.out" &
  sessions+=("$!")
  exec {input}>"$pipes/$name.in" {output}<"$pipes/$name.out"
  inputs+=("$input")
  outputs+=("$output")
}

# All sessions are connected before the first snapshot is taken, so that only milliseconds lie between the snapshots.
inputs=()
outputs=()
for index in "${!names[@]}"; do
  open_snapshot "$index"
  echo 'set idle_in_transaction_session_timeout = 0; set statement_timeout = 0; select 1;' >&"${inputs[$index]}"
  read -r -t 60 -u "${outputs[$index]}" _ || fail "${names[$index]}: no connection"
done
snapshots=()
for index in "${!names[@]}"; do
  echo 'begin isolation level repeatable read read only; select pg_export_snapshot();' >&"${inputs[$index]}"
  read -r -t 60 -u "${outputs[$index]}" snapshot || fail "${names[$index]}: no snapshot"
  snapshots+=("$snapshot")
done
taken_at="$(date -u +%Y-%m-%dT%H:%M:%SZ)"

for index in "${!names[@]}"; do
  name="${names[$index]}"
  # Without its epochs a restored database begins one, in which it keeps instances that may carry streams (docs/decisions/0063).
  # A Temporal that finds the servers of the backup among its members waits for them for a minute, and hands out no task meanwhile.
  on "${urls[$index]}" pg_dump --format custom --no-owner --no-privileges --snapshot "${snapshots[$index]}" \
    --exclude-table-data '*.epochs' --exclude-table-data '*.cluster_membership' --file "$work/$name.dump"
  echo "dumped $name: $(wc -c <"$work/$name.dump") bytes"
done
echo "$taken_at" >"$work/taken_at"
(cd "$work" && sha256sum taken_at ./*.dump >SHA256SUMS)
sync "$work"/*
mv "$work" "$folder"
echo "backup of $taken_at in $folder"
