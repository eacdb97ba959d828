#!/bin/sh
# A worker with curl, in the consumer protocol (KIP-848): it prints the lines of text files.
#
#     KCOORD_TOKEN=… sh worker.sh DIRECTORY
#
# Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. Any number of workers share the
# files. KCOORD_URL says where the service is; the topic has to exist: POST /v1/topics. curl 7.84 or newer.
set -u

directory=$1
api=${KCOORD_URL:-http://127.0.0.1:8000}/v1
group=${KCOORD_GROUP:-lines-shell}
topic=lines
batch=20           # lines of each partition between two commits
hold_ms=1000       # how long the service may hold a heartbeat when there is nothing to do
line_end='
'

# The member id: a UUID that we choose, and keep for as long as we run.
member=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed 's/^\(.\{8\}\)\(.\{4\}\).\(.\{3\}\).\(.\{3\}\)/\1-\2-4\3-8\4-/')
epoch=0            # 0: not a member; the next heartbeat joins
interval_ms=0
owned=             # partitions that are ours, such as "0,2"
full=yes           # the next heartbeat says everything: when joining, and after a failure
report=            # the next heartbeat says what we own
stopping=

trap 'stopping=yes' TERM INT

# POST the body $2 to the path $1 of the group; sets $status (000: no answer), $answer, $action and $retry_after.
post() {
    answer=$(printf '%s' "$2" | curl -sS --connect-timeout 5 --max-time $((hold_ms / 1000 + 10)) \
        -H "Authorization: Bearer $KCOORD_TOKEN" -H 'Content-Type: application/json' \
        -w '\n%{http_code} %header{retry-after}' --data-binary @- "$api/groups/$group/$1")
    status=${answer##*"$line_end"}
    answer=${answer%"$line_end"*}
    retry_after=${status#* } status=${status%% *}
    action=$(field action)
    [ "$status" = 200 ] || action=${action:-retry}    # no answer, or that of a proxy: retry
}

# The value of a field of $answer: a number or a text.
field() {
    printf '%s' "$answer" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}

say() {
    echo "$*" >&2
}

# One heartbeat. Fails unless we are a member afterwards.
heartbeat() {
    body='"member_id":"'$member'","member_epoch":'$epoch',"max_wait_ms":'$1
    topics='{"topic":"'$topic'","partitions":['$owned']}'
    [ "$full" ] && body=$body',"client_id":"worker.sh","rebalance_timeout_ms":60000,"subscribed_topic_names":["'$topic'"]'
    [ "$full$report" ] && body=$body',"topic_partitions":['${owned:+$topics}']'
    post consumer-heartbeat "{$body}"
    case $(field error) in
    GROUP_ID_NOT_FOUND | UNKNOWN_TOPIC_*) [ "$epoch" -gt 0 ] && action=rejoin ;;    # deleted meanwhile
    esac
    case $action in
    '') accept ;;
    retry | rediscover)
        say "heartbeat: $status $(field error): again"
        full=yes
        pause
        return 1 ;;
    rejoin)
        say "heartbeat: $(field error): partitions $owned are lost, joining again"
        epoch=0 owned='' full=yes
        return 1 ;;
    *)
        say "heartbeat: $answer"
        exit 1 ;;
    esac
}

# The heartbeat was answered: take the epoch, and the assignment if there is a new one.
accept() {
    epoch=$(field member_epoch) interval_ms=$(field heartbeat_interval_ms) full='' report=''
    case $answer in
    *'"assignment":null'*) ;;
    *)
        # What is not in it is not ours from here on. We commit after each batch, so there is nothing left to commit:
        # the next heartbeat, at once, reports what we have, and only then another member gets the rest.
        owned=$(printf '%s' "$answer" | sed -n 's/.*"partitions":\[\([0-9,]*\)\].*/\1/p')
        report=yes
        say "assigned: [$owned]" ;;
    esac
}

# Process the next lines of each partition, then commit. Sets $done_lines.
work() {
    done_lines=0 commits=
    post offsets/fetch '{"topics":[{"name":"'$topic'","partitions":['$owned']}],"require_stable":true}'
    [ "$action" ] && { say "fetch: $status $(field error)"; pause; return; }
    # Commits name this id: they must not count for a topic that gets the name while we work.
    topic_id=$(field topic_id)
    [ "$topic_id" = null ] && { say "topic $topic does not exist"; pause; return; }
    for item in $(printf '%s' "$answer" | tr '{' '\n' |
        sed -n 's/^"partition":\([0-9]*\),"committed_offset":\(-\{0,1\}[0-9]*\),.*"error_code":0,.*/\1:\2/p'); do
        partition=${item%%:*} offset=${item##*:}
        [ "$offset" -lt 0 ] && offset=0    # nothing committed yet
        lines=$(sed -n "$((offset + 1)),$((offset + batch))p" "$directory/$partition.txt")
        [ "$lines" ] || continue
        while read -r line; do             # the work
            echo "$partition $offset $line"
            offset=$((offset + 1)) done_lines=$((done_lines + 1))
        done <<LINES
$lines
LINES
        commits=$commits,'{"partition":'$partition',"committed_offset":'$offset'}'
    done
    [ "$commits" ] && commit "${commits#,}"
}

# Commit, until it is stored or the group went on without us: then others have the partitions, and the next heartbeat says so.
commit() {
    attempts=0
    while [ ! "$stopping" ] || [ $attempts -lt 3 ]; do
        attempts=$((attempts + 1))
        post offsets/commit '{"member_id":"'$member'","generation_id_or_member_epoch":'$epoch',
            "topics":[{"topic_id":"'$topic_id'","partitions":['$1']}]}'
        case $action in
        retry | rediscover) say "commit: $status $(field error): again" && pause ;;
        rejoin) say "commit: $(field error)" && return ;;
        '') case $answer in
            *'"error":"UNKNOWN_TOPIC_ID"'*) say "commit: the topic was created again: beginning again" && return ;;
            *'"error_code":'[1-9-]*) ;;
            *) return ;;
            esac
            say "commit: $answer" && exit 1 ;;
        *) say "commit: $answer" && exit 1 ;;
        esac
    done
}

pause() {
    sleep "${retry_after:-1}"
}

wait_ms=0
last=0
done_lines=0
while [ ! "$stopping" ]; do
    now=$(date +%s)
    # A heartbeat when one is due; at once if it joins or reports; a held one when there is nothing to do.
    if [ "$full$report" ] || [ "$done_lines" -eq 0 ] || [ $((now - last)) -ge $((interval_ms / 1000)) ]; then
        [ "$full$report" ] || [ "$done_lines" -gt 0 ] && wait_ms=0 || wait_ms=$hold_ms
        heartbeat $wait_ms || continue
        last=$now
        [ "$report" ] && continue
    fi
    done_lines=0
    [ "$owned" ] && work
done

# SIGTERM: everything is committed, so leave. The others get our partitions at once.
epoch=-1 full='' report=''
post consumer-heartbeat '{"member_id":"'$member'","member_epoch":-1}'
say "left: $status"
