// pgx, with its cached statements, its batches and its cancel by context.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
)

var ctx = context.Background()

// connect opens a session; all but what `change` says comes from PG* variables.
func connect(change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("")
	must(err)
	if change != nil {
		change(config)
	}
	return pgx.ConnectConfig(ctx, config)
}

func withSession(change func(*pgx.ConnConfig), use func(*pgx.Conn)) {
	session, err := connect(change)
	must(err)
	defer session.Close(ctx)
	use(session)
}

func setting(name, value string) func(*pgx.ConnConfig) {
	return func(config *pgx.ConnConfig) { config.RuntimeParams[name] = value }
}

func ask(session *pgx.Conn, text string, values ...any) (found figures) {
	must(session.QueryRow(ctx, text, values...).Scan(&found.count, &found.total))
	return
}

func run(session *pgx.Conn, text string) {
	_, err := session.Exec(ctx, text)
	must(err)
}

func refused(code string, err error) *pgconn.PgError {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != code {
		fail("expected %s, got %v", code, err)
	}
	return refusal
}

func connects() {
	withSession(nil, func(session *pgx.Conn) {
		if _, encrypted := session.PgConn().Conn().(*tls.Conn); !encrypted {
			fail("the connection is not encrypted")
		}
		var user, database string
		must(session.QueryRow(ctx, "SELECT current_user, current_database()").Scan(&user, &database))
		equal([]string{user, database}, []string{"reader", "shop"})
	})
	// Every mode in which pgx sends statements, the simple protocol among them.
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement,
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol} {
		mode := func(config *pgx.ConnConfig) { config.DefaultQueryExecMode = mode }
		withSession(mode, func(session *pgx.Conn) {
			equal(ask(session, asOf, first), ordersFirst)
			equal(ask(session, asOf, second), ordersSecond)
		})
	}
}

func connectsDirectly() {
	must(os.Setenv("PGSSLNEGOTIATION", "direct"))
	defer os.Unsetenv("PGSSLNEGOTIATION")
	withSession(nil, func(session *pgx.Conn) { equal(ask(session, orders), ordersNow) })
}

func isRefused() {
	_, err := connect(func(config *pgx.ConnConfig) { config.Password = "wrong" })
	refused("28P01", err)
	withSession(nil, func(session *pgx.Conn) {
		_, err := session.Exec(ctx, "DELETE FROM orders WHERE id = $1", 1)
		refused("25006", err)
		equal(ask(session, orders), ordersNow)
	})
}

func reflects() {
	withSession(nil, func(session *pgx.Conn) {
		statement, err := session.Prepare(ctx, "all", "SELECT * FROM orders FOR SYSTEM_TIME AS OF $1")
		must(err)
		equal(statement.ParamOIDs, []uint32{pgtype.TimestamptzOID})
		names := []string{}
		for _, field := range statement.Fields {
			names = append(names, field.Name)
		}
		equal(names, strings.Fields("id region number state total placed_at tags profile seal"))
		rows, err := session.Query(ctx, `SELECT pg_get_constraintdef(oid) FROM pg_constraint
			WHERE conrelid = 'orders'::regclass AND contype IN ('p', 'f') ORDER BY contype DESC`)
		must(err)
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(err)
		equal(keys[0], "PRIMARY KEY (id)")
		contains(keys[1], "(region, number) REFERENCES customers(region, number)")
	})
}

func queries() {
	withSession(nil, func(session *pgx.Conn) {
		state, err := session.LoadType(ctx, "order_state")
		must(err)
		session.TypeMap().RegisterType(state)
		var (
			total    pgtype.Numeric
			placedAt time.Time
			status   string
			tags     []string
			profile  map[string]any
			seal     []byte
		)
		must(session.QueryRow(ctx, `SELECT state, total, placed_at, tags, profile, seal
			FROM orders FOR SYSTEM_TIME AS OF $1 WHERE id = $2`, first, 1).
			Scan(&status, &total, &placedAt, &tags, &profile, &seal))
		value, err := total.Float64Value()
		must(err)
		equal([]any{status, value.Float64}, []any{"paid", 10.0})
		equal(placedAt.UTC(), time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
		equal(tags, []string{"gift", "b c"})
		equal(profile, map[string]any{"note": "süß €", "tier": 2.0})
		equal(seal, []byte{0, 255, 16})
	})
}

func makesMistakes() {
	text := "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()"
	withSession(nil, func(session *pgx.Conn) {
		run(session, "BEGIN")
		_, err := session.Exec(ctx, text)
		refusal := refused("42809", err)
		contains(refusal.Message, `"pg_class" is not system-versioned`)
		rest := string([]rune(text)[refusal.Position-1:]) // characters, not bytes
		if !strings.HasPrefix(rest, "pg_class ") && !strings.HasPrefix(rest, "FOR ") {
			fail("the position points to %q", rest)
		}
		run(session, "ROLLBACK")
		equal(ask(session, orders), ordersNow)
	})
}

// alternate asks for both instants in turn; pgx prepares the statement at its first execution.
func alternate(session *pgx.Conn) {
	for range 5 {
		equal(ask(session, asOf, first), ordersFirst)
		equal(ask(session, asOf, second), ordersSecond)
	}
}

func prepares() {
	withSession(nil, func(session *pgx.Conn) {
		alternate(session)
		var generic, custom int
		must(session.QueryRow(ctx, plans).Scan(&generic, &custom))
		equal(generic+custom, 10)
		batch := &pgx.Batch{} // pipelined
		for range 5 {
			batch.Queue(asOf, first)
			batch.Queue(asOf, second)
		}
		answers := session.SendBatch(ctx, batch)
		for turn := range 10 {
			var found figures
			must(answers.QueryRow().Scan(&found.count, &found.total))
			equal(found, []figures{ordersFirst, ordersSecond}[turn%2])
		}
		must(answers.Close())
	})
}

func plansOnce() {
	withSession(setting("plan_cache_mode", "force_generic_plan"), func(session *pgx.Conn) {
		alternate(session)
		var generic, custom int
		must(session.QueryRow(ctx, plans).Scan(&generic, &custom))
		equal([]int{generic, custom}, []int{10, 0})
	})
}

// fetch returns the ids of a page; pgx has no cursors but SQL's.
func fetch(session *pgx.Conn, text string) []int {
	rows, err := session.Query(ctx, text, pgx.QueryExecModeExec)
	must(err)
	page, err := pgx.CollectRows(rows, pgx.RowTo[int])
	must(err)
	return page
}

func readsCursor() {
	withSession(nil, func(session *pgx.Conn) {
		run(session, "BEGIN")
		_, err := session.Exec(ctx, `DECLARE pages CURSOR FOR
			SELECT id FROM readings FOR SYSTEM_TIME AS OF $1 ORDER BY id`,
			pgx.QueryExecModeSimpleProtocol, first)
		must(err)
		found := []int{}
		for {
			page := fetch(session, "FETCH 700 FROM pages")
			if len(page) == 0 {
				break
			}
			found = append(found, page...)
		}
		equal(len(found), readingsFirst)
		for index, id := range found {
			equal(id, index+1)
		}
		run(session, "COMMIT")
	})
}

func copied(session *pgx.Conn, text string) int {
	var target bytes.Buffer
	tag, err := session.PgConn().CopyTo(ctx, &target, text)
	must(err)
	equal(int(tag.RowsAffected()), bytes.Count(target.Bytes(), []byte("\n")))
	return int(tag.RowsAffected())
}

func copies() {
	withSession(nil, func(session *pgx.Conn) {
		equal(copied(session, "COPY readings TO STDOUT"), readingsNow)
		equal(copied(session, "COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF '"+
			os.Getenv("SHOP_SECOND")+"') TO STDOUT"), readingsSecond)
	})
}

func cancels() {
	// The end of the context sends a CancelRequest, and the session lives on.
	byRequest := func(config *pgx.ConnConfig) {
		config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 20 * time.Second}
		}
	}
	withSession(byRequest, func(session *pgx.Conn) {
		soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		defer stop()
		_, err := session.Exec(soon, "SELECT pg_sleep(60)")
		refused("57014", err)
		equal(ask(session, orders), ordersNow)
	})
}

func main() {
	check("connect", connects)
	check("direct TLS", connectsDirectly)
	check("refused", isRefused)
	check("reflect", reflects)
	check("query", queries)
	check("mistake", makesMistakes)
	check("prepared", prepares)
	check("generic plan", plansOnce)
	check("cursor", readsCursor)
	check("copy", copies)
	check("cancel", cancels)
	check("pin", pins)
	check("pin prepared", pinsPrepared)
	check("pin cursor", pinsCursor)
	check("pin at start-up", pinsAtStartUp)
	if anyFailed {
		os.Exit(1)
	}
}
