#!/bin/sh
# Makes the secrets that docker-compose.yml mounts, each once: a file that is there is never touched.
set -eu
cd "$(dirname "$0")/secrets"
# The folder keeps others on this machine out. The files have to be readable inside the containers, whose users are not ours.
chmod 700 .
umask 022

random() {
  head -c 48 /dev/urandom | base64 | tr -d '=\n' | tr '+/' '-_'
}

# keep NAME VALUE: written beside its place and then moved there, so that a broken-off run leaves no half of a secret.
keep() {
  if [ -e "$1" ]; then
    echo "kept  $1"
    return
  fi
  printf '%s\n' "$2" >"$1.half"
  mv "$1.half" "$1"
  echo "made  $1"
}

for name in postgres_password svc_database_password temporal_database_password jwt_secret relay_auth_secret operator_password; do
  keep "$name" "$(random)"
done
keep oauth_encryption_key "$(head -c 32 /dev/urandom | base64)"
keep billing_webhook_secret "whsec_$(head -c 32 /dev/urandom | base64)"
keep database_url "postgres://svc:$(cat svc_database_password)@postgres:5432/svc"
