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

password database_superuser_password >/dev/null
password grafana_password >/dev/null

# Everybody has a login of their own on each server: migrate, the triggers, the workers, and people.
broker_users=
for user in owner trigger worker operator; do
    login=$user
    tags=
    [ "$user" = owner ] && login=matins
    [ "$user" = operator ] && tags='"monitoring"'
    database_password=$(password "database_${user}_password")
    broker_password=$(password "broker_${user}_password")
    echo "postgresql://$login:$database_password@postgres:5432/matins" | write "database_${user}_url"
    echo "amqp://$user:$broker_password@rabbitmq:5672/matins" | write "broker_${user}_url"
    broker_users="$broker_users${broker_users:+,}
    {\"name\": \"$user\", \"password\": \"$broker_password\", \"tags\": [$tags]}"
done
echo "http://operator:$broker_password@rabbitmq:15672" | write management_url
write api_callers.toml <<EOF
# Who may call the triggers' endpoint: docs/outside-schedulers.md.
[callers.compose]
jobs = ["invoice-run", "usage-rollup", "charge"]
keys = ["whsec_$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"]
EOF
write channels.toml <<EOF
# Whom alerts are told, and a switch outside that misses us: docs/notifications.md.
[channels.log]
kind = "log"
EOF
# Whoever gives this name and password to the gateway operates; more people are more lines here, and names there.
echo "operator:{PLAIN}$(password console_password)" | write console_people
write console_access.toml <<EOF
# Who may look at the console, and who may act there: docs/console.md.
url = "http://127.0.0.1:8088"
[proxy]
trusted = ["172.30.94.10/32"]
name_header = "X-Matins-Person"
read = "everyone"
operate = ["operator"]
EOF
write broker_users.json <<EOF
{
  "users": [$broker_users
  ]
}
EOF
