// A member with kafkajs, for tests: it polls, and does what the lines of its standard input ask.
//
//     node kafkajs_member.js ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const [address, groupId, topic, session] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: [address],
  logLevel: logLevel.ERROR,
  sasl: { mechanism: 'plain', username: 'any', password: process.env.KCOORD_TOKEN },
  ssl: false
})
const consumer = kafka.consumer({ groupId, sessionTimeout: Number(session), heartbeatInterval: 500, maxWaitTimeInMs: 200 })
const admin = kafka.admin()
let owned = []

async function answer(words) {
  const partition = Number(words[1])
  switch (words[0]) {
    case 'numbers':
      return owned.join(' ')
    case 'commit':
      await consumer.commitOffsets([{ topic, partition, offset: words[2] }])
      return ''
    case 'committed': {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
      const entry = found.partitions.find((one) => one.partition === partition)
      return entry ? entry.offset : '-1'
    }
  }
  throw new Error(`nobody knows ${words[0]}`)
}

async function main() {
  consumer.on(consumer.events.GROUP_JOIN, (event) => {
    owned = event.payload.memberAssignment[topic] || []
  })
  consumer.on(consumer.events.REBALANCING, () => {
    console.log('revoked', owned.join(' '))
    owned = []
  })
  await admin.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachMessage: async () => {} })
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'close') break
    try {
      console.log('= ' + (await answer(line.split(' '))))
    } catch (error) {
      console.log('! ' + error)
    }
  }
  await consumer.disconnect()
  await admin.disconnect()
  console.log('= closed')
  process.exit(0)
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
