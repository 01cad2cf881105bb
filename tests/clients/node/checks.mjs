// How the program reports, and what it knows of the shop. node-postgres gives bigint and numeric as
// text, because JavaScript's numbers cannot hold them.
import assert from 'node:assert/strict'

export const first = process.env.SHOP_FIRST
export const second = process.env.SHOP_SECOND

export const orders = 'SELECT count(*), sum(total) FROM orders'
export const ordersFirst = ['10', '550.00']
export const ordersSecond = ['12', '773.23']
export const ordersNow = ['11', '651.11']
export const readings = { first: 5000, second: 6000, now: 7 }

export const order1 = {
  id: '1', region: 'süd', number: 1, state: 'paid', total: '10.00',
  placed_at: new Date('2026-01-02T03:04:05.678Z'),  // a Date holds milliseconds
  tags: ['gift', 'b c'], profile: { note: 'süß €', tier: 2 }, seal: Buffer.from([0, 255, 16])
}

// Plans that the server made for prepared statements that read orders.
export const plans = `SELECT sum(generic_plans)::int AS generic, sum(custom_plans)::int AS custom
                      FROM pg_prepared_statements WHERE statement LIKE 'SELECT count%orders%'`

// One line for `run`; what went wrong is told at length before it.
export async function check(name, run) {
  try {
    await run()
    console.log('ok', name)
  } catch (error) {
    console.log(error)
    console.log(`failed ${name}: ${String(error.message ?? error).replace(/\s+/g, ' ')}`)
    process.exitCode = 1
  }
}

export async function refused(code, promise) {
  try {
    await promise
  } catch (error) {
    assert.equal(error.code, code, error.message)
    return error
  }
  assert.fail(`no ${code}`)
}
