#!/bin/sh
# Creates the secrets that docker-compose.yml mounts. Existing files are not changed.
set -eu
cd "$(dirname "$0")/secrets"
# The folder is closed to other users of this machine. The files must be readable by the users inside the containers.
chmod 700 .
umask 022

random() {
  head -c 48 /dev/urandom | base64 | tr -d '=\n' | tr '+/' '-_'
}

# create NAME VALUE: writes a temporary file and renames it, so that an aborted run leaves no incomplete secret.
create() {
  if [ -e "$1" ]; then
    echo "exists   $1"
    return
  fi
  printf '%s\n' "$2" >"$1.tmp"
  mv "$1.tmp" "$1"
  echo "created  $1"
}

for name in postgres_password svc_database_password temporal_database_password jwt_secret relay_auth_secret operator_password grafana_password; do
  create "$name" "$(random)"
done
create oauth_encryption_key "$(head -c 32 /dev/urandom | base64)"
create billing_webhook_secret "whsec_$(head -c 32 /dev/urandom | base64)"
create database_url "postgres://svc:$(cat svc_database_password)@postgres:5432/svc"
create temporal_database_url "postgres://temporal:$(cat temporal_database_password)@postgres:5432/temporal"
create temporal_visibility_database_url "postgres://temporal:$(cat temporal_database_password)@postgres:5432/temporal_visibility"
