# Sourced by backup.sh and restore.sh: the databases, and how to run a program of Postgres on one of them.
#
#   DATABASE_URL                      the service's
#   TEMPORAL_DATABASE_URL             Temporal's main database; without it the service's database alone
#   TEMPORAL_VISIBILITY_DATABASE_URL  Temporal's list of workflows; required with the former
#
# Each is postgres://user:password@host:port/database?sslmode=…, or a file with _FILE appended to the name. The parameters are those
# that the service accepts (platform/config/database-url.ts).

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

# set_tls NAME VALUE: as the service understands values that libpq does not know.
set_tls() {
  case "$1=$2" in
    ssl=true | ssl=1) PGSSLMODE=verify-full ;;
    ssl=false | ssl=0) PGSSLMODE=disable ;;
    *=no-verify) PGSSLMODE=require ;;
    *) PGSSLMODE="$2" ;;
  esac
  export PGSSLMODE
}

# set_parameter NAME VALUE: sets the variables of libpq for one parameter of a URL.
set_parameter() {
  local name="$1" value="$2"
  case "$name" in
    sslmode | ssl) set_tls "$name" "$value" ;;
    sslnegotiation) export PGSSLNEGOTIATION="$value" ;;
    sslrootcert) export PGSSLROOTCERT="$value" ;;
    sslcert) export PGSSLCERT="$value" ;;
    sslkey) export PGSSLKEY="$value" ;;
    channel_binding) export PGCHANNELBINDING="$value" ;;
    gssencmode) export PGGSSENCMODE="$value" ;;
    target_session_attrs) export PGTARGETSESSIONATTRS="$value" ;;
    application_name) export PGAPPNAME="$value" ;;
    host) export PGHOST="$value" ;;
    port) export PGPORT="$value" ;;
    user) export PGUSER="$value" ;;
    password) export PGPASSWORD="$value" ;;
    dbname) export PGDATABASE="$value" ;;
    schema | search_path | currentSchema)
      [[ "$value" =~ ^(public)?$ ]] || fail "a database URL has the parameter $name: all schemas are part of a backup"
      ;;
    options)
      [[ "$value" =~ ^((endpoint|project|reference)=[A-Za-z0-9_-]+)?$ ]] ||
        fail 'a database URL has the parameter options: remove it'
      ;;
    pgbouncer)
      [ "$value" = false ] ||
        fail 'a database URL leads to a pooler (pgbouncer=true), through which no backup can be taken: name the server itself'
      ;;
    prepare | keepalives | keepalives_* | tcp_user_timeout | connect_timeout | fallback_application_name) ;;
    client_encoding | load_balance_hosts | sslsni | sslcompression) ;;
    connection_limit | pool_timeout | socket_timeout | statement_cache_size | uselibpqcompat | supa | workaround) ;;
    *) fail "a database URL has the parameter $name, which is not known: remove it" ;;
  esac
}

# Without an authority, the service compares certificates with the public ones, and with the host.
use_public_authorities() {
  case "${PGSSLROOTCERT:-} ${PGSSLMODE:-}" in
    ' verify-ca' | ' verify-full' | 'system '*) export PGSSLROOTCERT=system PGSSLMODE=verify-full ;;
  esac
}

# on URL PROGRAM…: runs the program with the variables of libpq, since other users of the machine can read arguments.
on() (
  [[ "$1" =~ ^postgres(ql)?://(([^:/?#@]*)(:([^/?#]*))?@)?([^/?#@]*)(/([^/?#]*))?(\?([^#]*))?$ ]] ||
    fail 'a database URL is not postgres://user:password@host:port/database'
  local authority query hosts host option
  PGUSER="$(decode "${BASH_REMATCH[3]}")"
  PGPASSWORD="$(decode "${BASH_REMATCH[5]}")"
  authority="${BASH_REMATCH[6]}"
  PGDATABASE="$(decode "${BASH_REMATCH[8]}")"
  query="${BASH_REMATCH[10]}"
  PGHOST='' PGPORT=''
  IFS=',' read -ra hosts <<<"$authority"
  for host in "${hosts[@]}"; do
    [[ "$host" =~ ^(\[([^]]+)\]|([^:]*))(:([0-9]+))?$ ]] || fail 'a database URL has a host that is not host:port'
    PGHOST+="${PGHOST:+,}$(decode "${BASH_REMATCH[2]}${BASH_REMATCH[3]}")"
    PGPORT+="${PGPORT:+,}${BASH_REMATCH[5]:-5432}"
  done
  export PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE
  IFS='&' read -ra options <<<"$query"
  for option in "${options[@]}"; do
    set_parameter "$(decode "${option%%=*}")" "$(decode "${option#*=}")"
  done
  use_public_authorities
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
