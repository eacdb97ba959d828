// A member with @platformatic/kafka, for tests: it polls, and does what the lines of its standard input ask.
//
//     node platformatic_member.js ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password, KCOORD_PROTOCOL classic or consumer. Lines and answers are those of
// java_member/Member.java.

const readline = require('readline')
const { createRequire } = require('module')
const { pathToFileURL } = require('url')

const [address, groupId, topic, session] = process.argv.slice(2)
const protocol = process.env.KCOORD_PROTOCOL

// require() of an ES module needs a newer Node, and import() does not look at NODE_PATH.
const entry = createRequire(process.env.NODE_PATH + '/').resolve('@platformatic/kafka')

const numbers = (consumer) => (consumer.assignments || [])
  .filter((one) => one.topic === topic)
  .flatMap((one) => one.partitions)
  .join(' ')

async function answer(consumer, words) {
  const partition = Number(words[1])
  switch (words[0]) {
    case 'numbers':
      return numbers(consumer)
    case 'commit':
      await consumer.commit({ offsets: [{ topic, partition, offset: BigInt(words[2]), leaderEpoch: -1 }] })
      return ''
    case 'committed': {
      const found = await consumer.listCommittedOffsets({ topics: [{ topic, partitions: [partition] }] })
      return String(found.get(topic)[partition])
    }
  }
  throw new Error(`nobody knows ${words[0]}`)
}

async function main() {
  const { Consumer } = await import(pathToFileURL(entry))
  const timeouts = protocol === 'classic'
    ? { sessionTimeout: Number(session), heartbeatInterval: 500, rebalanceTimeout: 300000 }
    : {}
  const consumer = new Consumer({
    groupId,
    groupProtocol: protocol,
    clientId: 'platformatic',
    bootstrapBrokers: [address],
    sasl: { mechanism: 'PLAIN', username: 'any', password: process.env.KCOORD_TOKEN },
    maxWaitTime: 200,
    autocommit: false,
    ...timeouts
  })
  let owned = ''
  consumer.on('consumer:group:rebalance', () => {
    console.log('revoked', owned)
    owned = ''
  })
  consumer.on('consumer:group:join', () => { owned = numbers(consumer) })
  const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest', maxWaitTime: 200 })
  stream.on('data', () => {})
  stream.on('error', (error) => console.error(error))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'close') break
    try {
      console.log('= ' + (await answer(consumer, line.split(' '))))
    } catch (error) {
      console.log('! ' + error)
    }
  }
  await consumer.close(true)
  console.log('= closed')
  process.exit(0)
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
