#!/bin/sh
# Makes the namespace, and the attributes by which operators find workflows. What is there already stays as it is.
set -eu
until temporal operator cluster health >/dev/null 2>&1; do
  echo 'waiting for Temporal'
  sleep 2
done

namespace="${TEMPORAL_NAMESPACE:-default}"
if ! temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
  # Histories of ended workflows can be looked at for a week.
  temporal operator namespace create --namespace "$namespace" --retention 168h
fi
# A fresh namespace is known to all of the server only after a moment.
until known="$(temporal operator search-attribute list --namespace "$namespace")"; do
  sleep 2
done
for name in RelayState Region PlanTier UserId; do
  echo "$known" | grep -qw "$name" ||
    temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword
done
