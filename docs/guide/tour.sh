#!/bin/sh
# `make run`: the main job on real data, in under a minute. Run from the root of a built tree.
set -eu

PYTHON=${PYTHON:-python3}
journal() { "$PYTHON" -m journal.cli.main "$@"; }
journal_bench() { "$PYTHON" -m journal.cli.bench "$@"; }
say() { printf '\n== %s\n' "$*"; }

mkdir -p build
tour=$(mktemp -d build/tour.XXXXXX)
writer=
trap 'if [ -n "$writer" ]; then kill "$writer" 2>/dev/null || :; fi; rm -rf "$tour"' EXIT

say "A journal that an Apache Artemis broker wrote: its records, and what they mean to the broker"
mkdir "$tour/broker"
tar -xzf tests/golden/broker_basic/broker.tar.gz -C "$tour/broker"
journal print-data "$tour/broker/journal" --decode >"$tour/decoded.txt"
head -n 12 "$tour/decoded.txt" | cut -c 1-160
echo "... $(wc -l <"$tour/decoded.txt") lines; the queues of the same broker:"
journal print-data "$tour/broker/bindings" --decode | head -n 4 | cut -c 1-160

say "The same records in a journal of ours, each with a checksum"
journal export "$tour/broker/journal" >"$tour/records.jsonl"
journal import "$tour/copy" <"$tour/records.jsonl"
journal stat "$tour/copy"
journal verify "$tour/copy"
journal export "$tour/copy" 2>/dev/null | cmp - "$tour/records.jsonl"
echo "the copy's records are the broker's, byte for byte"

say "A writer killed (kill -9) in the middle of synced appends"
: >"$tour/acks"    # There before the writer is, which may be slow to start.
"$PYTHON" -m journal.cli.main append "$tour/killed" --count 10000000 --size 1024 >"$tour/acks" &
writer=$!
rounds=0
while [ "$(wc -l <"$tour/acks")" -lt 2000 ] && [ "$rounds" -lt 300 ]; do
    kill -0 "$writer" || { echo "the writer ended by itself" >&2; exit 1; }
    sleep 0.1
    rounds=$((rounds + 1))
done
kill -9 "$writer"
wait "$writer" 2>/dev/null || :
writer=
[ "$(wc -l <"$tour/acks")" -gt 0 ] || { echo "the writer acknowledged nothing in 30 s" >&2; exit 1; }
# The last line may have been cut by the kill: only whole ones were promised.
head -n "$(wc -l <"$tour/acks")" "$tour/acks" | sed -n 's/^ACK \([0-9][0-9]*\)$/\1/p' | sort >"$tour/acknowledged"
journal print-data "$tour/killed" --format ids 2>/dev/null | sort >"$tour/survived"
lost=$(comm -23 "$tour/acknowledged" "$tour/survived" | wc -l)
echo "acknowledged: $(wc -l <"$tour/acknowledged")   survived: $(wc -l <"$tour/survived")   acknowledged and lost: $lost"
[ "$lost" -eq 0 ]

say "A broker on embedded storage: orders sent, the broker killed (kill -9), started again, orders received"
broker() { "$PYTHON" -m broker.cli.main "$@"; }
# Starts it and waits until it serves, which its last line says with the port it got.
serve() {
    rm -f "$tour/broker.log"    # The shell in the background may empty it after the first look.
    touch "$tour/broker.log"
    "$PYTHON" -m broker.cli.main run "$tour/instance" >"$tour/broker.log" 2>&1 &
    writer=$!
    rounds=0
    until grep -q '^serving at' "$tour/broker.log"; do
        kill -0 "$writer" 2>/dev/null && [ "$rounds" -lt 300 ] || { cat "$tour/broker.log" >&2; exit 1; }
        sleep 0.1
        rounds=$((rounds + 1))
    done
    uri="tcp://127.0.0.1:$(sed -n 's/^serving at .*:\([0-9]*\)$/\1/p' "$tour/broker.log")"
}
broker create "$tour/instance" --user me --password secret --host 127.0.0.1 --port 0 --no-web \
    --max-disk-usage -1    # However full this disk is.
serve
orders="--user me --password secret --destination queue://orders --message-count 5000"
broker producer --url "$uri" $orders --message-size 1024
kill -9 "$writer"
wait "$writer" 2>/dev/null || :
serve
received=$(broker consumer --url "$uri" $orders --json | wc -l)
echo "sent and confirmed: 5000   received after the kill: $received"
[ "$received" -eq 5000 ]
kill "$writer"
wait "$writer" || { echo "the broker did not stop in order" >&2; exit 1; }
writer=
tail -n 1 "$tour/broker.log"

mkdir "$tour/bench"
for type in NIO ASYNCIO MAPPED IO_URING; do
    say "This disk, $type: 4,000 records of 1 KiB, synced, from 16 threads"
    journal_bench --type "$type" --count 4000 --size 1024 --producers 16 --sync --no-suggest --dir "$tour/bench" \
        >"$tour/figures.txt"
    sed -n '3,/^flushes/p' "$tour/figures.txt"
done

say "What to type next"
cat <<'END'
. .venv/bin/activate       # the commands of this tour: journal, journal-bench, broker, pipeline
journal --help
broker create build/my-broker --user me --password secret && broker run build/my-broker
make test                  # fetches 450 MB more, takes ten minutes
README.md, "Five minutes", goes on from here.
END
