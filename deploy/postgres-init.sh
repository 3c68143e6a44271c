#!/bin/sh
# The postgres image runs this once, on an empty volume. Creates a role with a database for the service, and a role with two
# databases for Temporal. Neither role can access the other's databases.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set svc_password `cat /run/secrets/svc_database_password`
\set temporal_password `cat /run/secrets/temporal_database_password`
create role svc login password :'svc_password';
create role temporal login password :'temporal_password';
create database svc owner svc;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database svc, temporal, temporal_visibility from public;
SQL
