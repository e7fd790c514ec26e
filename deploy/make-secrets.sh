#!/bin/sh
# Makes the secrets that the compose files mount, in deploy/secrets/; keeps those that exist.
#   sh deploy/make-secrets.sh                     for compose.yaml
#   sh deploy/make-secrets.sh mysql+pymysql       for deploy/compose-mariadb.yaml
#   sh deploy/make-secrets.sh postgresql+psycopg  for deploy/compose-postgresql.yaml
set -eu
umask 077
folder=$(dirname "$0")/secrets
mkdir -p "$folder"
cd "$folder"

random() {
    od -An -v -N "$1" -t x1 /dev/urandom | tr -d ' \n'
}

keep() {
    if [ ! -s "$1" ]; then
        printf '%s\n' "$2" >"$1"
        echo "made $folder/$1"
    fi
    # the user of the containers has another number; the folder keeps others of this host out
    chmod 0444 "$1"
}

keep access_token "$(random 24)"
keep secret_key "$(random 32)"
if [ "$#" -gt 0 ]; then
    keep database_password "$(random 24)"
    keep database_url "$1://xxl_job:$(cat database_password)@database/xxl_job"
    case $(cat database_url) in
    "$1"://*) ;;
    *)
        echo "$folder/database_url is for another database: move it away first" >&2
        exit 1
        ;;
    esac
fi
