#!/bin/sh
# Creates the namespace and the search attributes that operators filter workflows by. Existing ones are not changed.
set -eu
until reason="$(temporal operator cluster health 2>&1)"; do
  echo "waiting for Temporal: $reason"
  sleep 2
done

namespace="${TEMPORAL_NAMESPACE:-default}"
if ! temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
  # Histories of completed workflows are kept for a week.
  temporal operator namespace create --namespace "$namespace" --retention 168h
fi
# A new namespace becomes visible to all services of the server after a delay.
until existing="$(temporal operator search-attribute list --namespace "$namespace")"; do
  sleep 2
done
for name in RelayState Region Connection PlanTier PlanStatus UserId; do
  echo "$existing" | grep -qw "$name" ||
    temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword
done
