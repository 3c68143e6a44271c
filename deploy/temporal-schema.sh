#!/bin/sh
# Migrates Temporal's two databases to the schema of this version of its tools. Safe to repeat.
set -eu
SQL_PASSWORD="$(cat /run/secrets/temporal_database_password)"
export SQL_PASSWORD SQL_PLUGIN=postgres12 SQL_USER=temporal SQL_PORT="${SQL_PORT:-5432}"
schema="${TEMPORAL_SCHEMA:-/etc/temporal/schema}/postgresql/v12"

migrate() {
  export SQL_DATABASE="$1"
  temporal-sql-tool setup-schema --version 0.0
  temporal-sql-tool update-schema --schema-dir "$schema/$2/versioned"
}
migrate temporal temporal
migrate temporal_visibility visibility
