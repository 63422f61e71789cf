#!/bin/sh
# Makes the passwords that compose.yaml mounts into the containers: random, for this machine alone, ignored by git.
#
#   sh deploy/secrets.sh
#
# What exists is kept, because the database keeps the password that it was made with: delete the folder's files together
# with the volumes (docker compose down --volumes), or change both by hand.
set -eu
umask 077
folder=$(dirname "$0")/secrets
mkdir -p "$folder"
# The folder is closed to others on this machine. The files are readable, because each container reads its own ones
# as its own user.
chmod 700 "$folder"

write() { # NAME: keep the file, or write it from the standard input
    [ -e "$folder/$1" ] && return
    cat >"$folder/$1.part"
    chmod 444 "$folder/$1.part"
    mv "$folder/$1.part" "$folder/$1"
    echo "made $1"
}

password() { # NAME: print the password, made if it is missing
    [ -e "$folder/$1" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' | write "$1" >&2
    cat "$folder/$1"
}

database_password=$(password database_password)
owner_password=$(password broker_owner_password)
service_password=$(password broker_service_password)
operator_password=$(password broker_operator_password)
password database_superuser_password >/dev/null

# `migrate` owns the schema and the queues; the services use them. On the database both are one login as yet.
write database_owner_url <<EOF
postgresql://matins:$database_password@postgres:5432/matins
EOF
write database_url <<EOF
postgresql://matins:$database_password@postgres:5432/matins
EOF
write broker_owner_url <<EOF
amqp://owner:$owner_password@rabbitmq:5672/matins
EOF
write broker_url <<EOF
amqp://service:$service_password@rabbitmq:5672/matins
EOF
write management_url <<EOF
http://operator:$operator_password@rabbitmq:15672
EOF
write broker_users.json <<EOF
{
  "users": [
    {"name": "owner", "password": "$owner_password", "tags": []},
    {"name": "service", "password": "$service_password", "tags": []},
    {"name": "operator", "password": "$operator_password", "tags": ["monitoring"]}
  ]
}
EOF
