#!/usr/bin/env bash
# Restores a backup of backup.sh into empty databases: deploy/restore.sh FOLDER
#
# The databases and their roles exist and are empty, and neither the service nor Temporal runs. Needs bash, psql and pg_restore of
# the major version of the pg_dump that made it or newer, and the variables of databases.sh, of roles that own the databases.
set -euo pipefail
program=restore
. "$(dirname "$0")/databases.sh"

[ "$#" = 1 ] || fail 'usage: deploy/restore.sh FOLDER'
folder="$1"
[ -e "$folder/SHA256SUMS" ] || fail "$folder is not a complete backup"
(cd "$folder" && sha256sum --check --quiet SHA256SUMS) || fail "$folder was changed or damaged"
read_databases

# Everything is checked before anything is written.
for index in "${!names[@]}"; do
  name="${names[$index]}"
  [ -e "$folder/$name.dump" ] || fail "$folder has no $name.dump"
  relations="$(on "${urls[$index]}" psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --command "
    select count(*) from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname not in ('pg_catalog', 'information_schema') and nspname not like 'pg\\_%'")"
  [ "$relations" = 0 ] || fail "the database $name is not empty: drop it and create it again"
done

# The service's database comes last: its programs start to work as soon as its tables exist.
for index in "${!names[@]}"; do
  name="${names[$index]}"
  on "${urls[$index]}" pg_restore --exit-on-error --single-transaction --no-owner --no-privileges \
    --dbname "" "$folder/$name.dump"
  echo "restored $name"
done
echo "restored the backup of $(cat "$folder/taken_at")"
