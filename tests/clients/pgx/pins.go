package main

import (
	"os"

	"github.com/jackc/pgx/v5"
)

func pin(session *pgx.Conn, at string) {
	_, err := session.Exec(ctx, "SELECT set_config('tidemark.as_of', $1, false)", at)
	must(err)
}

func pins() {
	withSession(nil, func(session *pgx.Conn) {
		run(session, "SET tidemark.as_of = '"+os.Getenv("SHOP_FIRST")+"'")
		equal(ask(session, orders), ordersFirst)
		equal(copied(session, "COPY readings TO STDOUT"), readingsFirst)
		equal(ask(session, asOf, second), ordersSecond)
		for _, end := range []string{"ROLLBACK", "COMMIT"} {
			run(session, "BEGIN")
			run(session, "SET LOCAL tidemark.as_of = '"+os.Getenv("SHOP_SECOND")+"'")
			equal(ask(session, orders), ordersSecond)
			run(session, end)
			equal(ask(session, orders), ordersFirst)
		}
		run(session, "RESET tidemark.as_of")
		equal(ask(session, orders), ordersNow)
	})
}

func pinsPrepared() {
	withSession(nil, func(session *pgx.Conn) {
		for _, state := range []struct {
			at       string
			expected figures
		}{{"", ordersNow}, {os.Getenv("SHOP_FIRST"), ordersFirst},
			{os.Getenv("SHOP_SECOND"), ordersSecond}, {"", ordersNow}} {
			pin(session, state.at)
			for range 8 {
				equal(ask(session, orders+" WHERE id > $1", 0), state.expected)
			}
		}
	})
}

func pinsCursor() {
	withSession(nil, func(session *pgx.Conn) {
		run(session, "BEGIN")
		pin(session, os.Getenv("SHOP_FIRST"))
		run(session, "DECLARE pages CURSOR FOR SELECT id FROM readings")
		equal(len(fetch(session, "FETCH 100 FROM pages")), 100)
		pin(session, os.Getenv("SHOP_SECOND"))
		equal(len(fetch(session, "SELECT id FROM readings")), readingsSecond)
		equal(len(fetch(session, "FETCH ALL FROM pages")), readingsFirst-100)
		run(session, "COMMIT")
	})
}

func pinsAtStartUp() {
	withSession(setting("tidemark.as_of", os.Getenv("SHOP_FIRST")), func(session *pgx.Conn) {
		equal(ask(session, orders), ordersFirst)
		pin(session, os.Getenv("SHOP_SECOND"))
		equal(ask(session, orders), ordersSecond)
		run(session, "RESET tidemark.as_of")
		equal(ask(session, orders), ordersFirst)
	})
}
