# Sourced by backup.sh and restore.sh: the databases, and how to run a program of Postgres on one of them.
#
#   DATABASE_URL                      the service's
#   TEMPORAL_DATABASE_URL             Temporal's main database; without it the service's database alone
#   TEMPORAL_VISIBILITY_DATABASE_URL  Temporal's list of workflows; required with the former
#
# Each is postgres://user:password@host:port/database?sslmode=…, or a file with _FILE appended to the name.

fail() {
  echo "$program: $*" >&2
  exit 1
}

# url_of VARIABLE: its value, or that of the file that VARIABLE_FILE names.
url_of() {
  local file="${1}_FILE"
  if [ -n "${!1:-}" ]; then
    printf '%s' "${!1}"
  elif [ -n "${!file:-}" ]; then
    cat "${!file}"
  fi
}

decode() { printf '%b' "${1//%/\\x}"; }

# on URL PROGRAM…: runs the program with the variables of libpq, since other users of the machine can read arguments.
on() (
  [[ "$1" =~ ^postgres(ql)?://([^:@/]*)(:([^@]*))?@(\[([^]]+)\]|([^:/?]*))(:([0-9]+))?/([^?]+)(\?(.*))?$ ]] ||
    fail 'a database URL is not postgres://user:password@host:port/database'
  PGUSER="$(decode "${BASH_REMATCH[2]}")"
  PGPASSWORD="$(decode "${BASH_REMATCH[4]}")"
  PGHOST="${BASH_REMATCH[6]}${BASH_REMATCH[7]}"
  PGPORT="${BASH_REMATCH[9]:-5432}"
  PGDATABASE="$(decode "${BASH_REMATCH[10]}")"
  export PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE
  IFS='&' read -ra options <<<"${BASH_REMATCH[12]}"
  for option in "${options[@]}"; do
    case "$option" in
      sslmode=*) export PGSSLMODE="${option#*=}" ;;
      sslrootcert=*) export PGSSLROOTCERT="$(decode "${option#*=}")" ;;
      *) fail "a database URL has the option ${option%%=*}, of which only sslmode and sslrootcert are known" ;;
    esac
  done
  shift
  exec "$@"
)

# Sets names and urls, in the order in which snapshots are taken (docs/decisions/0035-back-up-the-service-last.md).
read_databases() {
  local service temporal visibility
  service="$(url_of DATABASE_URL)"
  temporal="$(url_of TEMPORAL_DATABASE_URL)"
  visibility="$(url_of TEMPORAL_VISIBILITY_DATABASE_URL)"
  [ -n "$service" ] || fail 'DATABASE_URL is not set'
  [ -n "$temporal" ] || [ -z "$visibility" ] || fail 'TEMPORAL_DATABASE_URL is not set'
  [ -n "$visibility" ] || [ -z "$temporal" ] || fail 'TEMPORAL_VISIBILITY_DATABASE_URL is not set'
  names=(svc)
  urls=("$service")
  if [ -n "$temporal" ]; then
    names=(temporal_visibility temporal svc)
    urls=("$visibility" "$temporal" "$service")
  fi
}
