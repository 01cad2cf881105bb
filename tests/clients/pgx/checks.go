package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"
)

// What the program knows of the shop.
const (
	orders         = "SELECT count(*), sum(total)::text FROM orders"
	asOf           = orders + " FOR SYSTEM_TIME AS OF $1"
	readingsFirst  = 5000
	readingsSecond = 6000
	readingsNow    = 7

	// Plans that the server made for prepared statements that read orders.
	plans = `SELECT sum(generic_plans)::int, sum(custom_plans)::int FROM pg_prepared_statements
	         WHERE statement LIKE 'SELECT count%orders%'`
)

// figures are the number of orders and the sum of their totals.
type figures struct {
	count int
	total string
}

var (
	first        = instant("SHOP_FIRST")
	second       = instant("SHOP_SECOND")
	ordersFirst  = figures{10, "550.00"}
	ordersSecond = figures{12, "773.23"}
	ordersNow    = figures{11, "651.11"}
)

func instant(variable string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, os.Getenv(variable))
	if err != nil {
		panic(err)
	}
	return at
}

// failure is what a check panics with; anything else is a mistake of the program.
type failure struct{ reason string }

func fail(format string, words ...any) {
	panic(failure{fmt.Sprintf(format, words...)})
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		fail("found %#v, expected %#v", found, expected)
	}
}

func contains(text, part string) {
	if !strings.Contains(text, part) {
		fail("found %q, expected it to contain %q", text, part)
	}
}

var anyFailed = false

// check runs one check and says how it went, one line for the runner.
func check(name string, run func()) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
			fmt.Println("ok", name)
		case failure:
			anyFailed = true
			fmt.Printf("failed %s: %s\n", name, strings.Join(strings.Fields(problem.reason), " "))
		default:
			panic(problem)
		}
	}()
	run()
}
