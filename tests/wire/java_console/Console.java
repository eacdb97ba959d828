// What web consoles for Kafka (AKHQ, Kafbat UI) ask of a cluster, with Kafka's Java client, for tests.
//
//     java -cp 'jars/*' Console.java PROPERTIES
//
// It answers each line of its standard input with one line: "= " and what was asked for, or "! " and the class of the
// error with its message. Calls that only some versions of the client have are made by reflection.

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Console {
    static final Properties settings = new Properties();
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        admin = Admin.create(settings);
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null && !line.equals("close"); line = asked.readLine()) {
            String[] words = line.split(" ");
            try {
                System.out.println("= " + answer(words[0], Arrays.copyOfRange(words, 1, words.length)));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                System.out.println("! " + cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
        }
        admin.close();
        System.out.println("= closed");
    }

    static String answer(String what, String[] given) throws Exception {
        switch (what) {
            case "cluster":
                return cluster();
            case "features":
                return "" + admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            case "broker-settings":
                return configs(ConfigResource.Type.BROKER, given[0]);
            case "topic-settings":
                return configs(ConfigResource.Type.TOPIC, given[0]);
            case "directories":
                return directories();
            case "topics":
                return sorted(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
            case "topic":
                return topic(given[0]);
            case "producers":
                return inOrder(admin.describeProducers(partitions(given[0])).all().get(),
                        state -> "" + state.activeProducers().size());
            case "ends":
                return ends(given[0], OffsetSpec.earliest()) + " " + ends(given[0], OffsetSpec.latest());
            case "ends-of-consumer":
                return endsOfConsumer(given[0]);
            case "messages":
                return messages(given[0]);
            case "produce":
                return produce(given[0]);
            case "groups":
                return sorted(admin.listConsumerGroups().all().get().stream()
                        .map(group -> group.groupId() + ":" + group.state().get() + ":" + group.isSimpleConsumerGroup())
                        .collect(Collectors.toList()));
            case "group":
                return group(admin.describeConsumerGroups(List.of(given[0])).all().get().get(given[0]));
            case "offsets":
                return offsets(given[0], given.length > 1 ? partitions(given[1]) : null);
            default:
                return change(what, given);
        }
    }

    static String change(String what, String[] given) throws Exception {
        switch (what) {
            case "create":
                Map<String, String> wanted = Stream.of(given).skip(2).map(word -> word.split("="))
                        .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
                NewTopic topic = new NewTopic(given[0], Optional.of(Integer.parseInt(given[1])), Optional.of((short) 1));
                admin.createTopics(List.of(topic.configs(wanted))).all().get();
                return "";
            case "grow":
                admin.createPartitions(Map.of(given[0], NewPartitions.increaseTo(Integer.parseInt(given[1])))).all().get();
                return "";
            case "delete-topic":
                admin.deleteTopics(List.of(given[0])).all().get();
                return "";
            case "reset":
                admin.alterConsumerGroupOffsets(given[0], offset(given)).all().get();
                return "";
            case "reset-by-consumer":
                resetByConsumer(given);
                return "";
            case "delete-offsets":
                admin.deleteConsumerGroupOffsets(given[0], Set.copyOf(partitions(given[1]))).all().get();
                return "";
            case "delete-group":
                admin.deleteConsumerGroups(List.of(given[0])).all().get();
                return "";
            default:
                waited(refused(what, given)).get();
                return "";
        }
    }

    /** The calls that no page of groups and topics needs. */
    static Object refused(String what, String[] given) throws Exception {
        TopicPartition first = given.length > 0 ? new TopicPartition(given[0], 0) : null;
        switch (what) {
            case "acls":
                return admin.describeAcls(AclBindingFilter.ANY).values();
            case "add-acl":
                ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, "any", PatternType.LITERAL);
                AccessControlEntry entry =
                        new AccessControlEntry("User:any", "*", AclOperation.READ, AclPermissionType.ALLOW);
                return admin.createAcls(List.of(new AclBinding(pattern, entry))).all();
            case "delete-acls":
                return admin.deleteAcls(List.of(AclBindingFilter.ANY)).all();
            case "quorum":
                return admin.describeMetadataQuorum().quorumInfo();
            case "quotas":
                return admin.describeClientQuotas(ClientQuotaFilter.all()).entities();
            case "alter-quota":
                ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "any"));
                return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                        entity, List.of(new ClientQuotaAlteration.Op("request_percentage", 50.0))))).all();
            case "users":
                return admin.describeUserScramCredentials().all();
            case "transactions":
                return admin.listTransactions().all();
            case "delegation-tokens":
                return admin.describeDelegationToken().delegationTokens();
            case "reassignments":
                return admin.listPartitionReassignments().reassignments();
            case "reassign":
                return admin.alterPartitionReassignments(
                        Map.of(first, Optional.of(new NewPartitionReassignment(List.of(1))))).all();
            case "elect":
                return admin.electLeaders(org.apache.kafka.common.ElectionType.PREFERRED, Set.of(first)).all();
            case "delete-records":
                return admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(1))).all();
            case "move":
                return admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(given[0], 0, 1), "/elsewhere")).all();
            case "alter-topic":
                return altered(ConfigResource.Type.TOPIC, given[0]);
            case "alter-broker":
                return altered(ConfigResource.Type.BROKER, given[0]);
            case "alter-topic-whole":
                Map<ConfigResource, Config> whole = Map.of(new ConfigResource(ConfigResource.Type.TOPIC, given[0]),
                        new Config(List.of(new ConfigEntry("retention.ms", "1"))));
                Object result = Admin.class.getMethod("alterConfigs", Map.class).invoke(admin, whole);
                return result.getClass().getMethod("all").invoke(result);
            default:
                throw new IllegalArgumentException(what);
        }
    }

    static KafkaFuture<?> waited(Object future) {
        return (KafkaFuture<?>) future;
    }

    static String cluster() throws Exception {
        DescribeClusterResult found = admin.describeCluster();
        return found.clusterId().get() + " controller=" + found.controller().get().id() + " nodes="
                + found.nodes().get().stream().map(Node::idString).sorted().collect(Collectors.joining(","));
    }

    static String configs(ConfigResource.Type kind, String name) throws Exception {
        ConfigResource resource = new ConfigResource(kind, name);
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return sorted(admin.describeConfigs(List.of(resource), all).all().get().get(resource).entries().stream()
                .map(ConfigEntry::name).collect(Collectors.toList()));
    }

    static Object altered(ConfigResource.Type kind, String name) {
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "1"), AlterConfigOp.OpType.SET);
        return admin.incrementalAlterConfigs(Map.of(new ConfigResource(kind, name), List.of(set))).all();
    }

    static String directories() throws Exception {
        List<Integer> ids = admin.describeCluster().nodes().get().stream().map(Node::id).collect(Collectors.toList());
        return admin.describeLogDirs(ids).allDescriptions().get().entrySet().stream()
                .flatMap(broker -> broker.getValue().entrySet().stream().map(directory -> broker.getKey() + ":"
                        + directory.getKey() + "=" + directory.getValue().replicaInfos().values().stream()
                        .mapToLong(replica -> replica.size()).sum()))
                .sorted().collect(Collectors.joining(" "));
    }

    static String topic(String name) throws Exception {
        return admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().stream()
                .map(p -> p.partition() + ":" + p.leader().id() + ":" + p.replicas().size() + ":" + p.isr().size())
                .collect(Collectors.joining(" "));
    }

    static List<TopicPartition> partitions(String name) throws Exception {
        return admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().stream()
                .map(p -> new TopicPartition(name, p.partition())).collect(Collectors.toList());
    }

    static String ends(String name, OffsetSpec which) throws Exception {
        Map<TopicPartition, OffsetSpec> asked =
                partitions(name).stream().collect(Collectors.toMap(Function.identity(), where -> which));
        return inOrder(admin.listOffsets(asked).all().get(), found -> "" + found.offset());
    }

    /** As AKHQ does: where a partition begins is the offset of the instant 0, and its end if there is none. */
    static String endsOfConsumer(String name) throws Exception {
        List<TopicPartition> asked = partitions(name);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null)) {
            var begins = consumer.offsetsForTimes(asked.stream().collect(Collectors.toMap(where -> where, where -> 0L)));
            Map<TopicPartition, Long> ends = consumer.endOffsets(asked);
            return asked.stream().map(where -> where.partition() + ":"
                    + (begins.get(where) == null ? ends.get(where) : begins.get(where).offset()) + "-" + ends.get(where))
                    .collect(Collectors.joining(" "));
        }
    }

    static String messages(String name) throws Exception {
        List<TopicPartition> asked = partitions(name);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null)) {
            consumer.assign(asked);
            consumer.seekToBeginning(asked);
            asked.forEach(consumer::position);
            return "" + consumer.poll(Duration.ofMillis(300)).count();
        }
    }

    static String produce(String name) throws Exception {
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            return "" + producer.send(new ProducerRecord<>(name, new byte[] {1})).get().offset();
        }
    }

    static String group(ConsumerGroupDescription found) {
        String members = found.members().stream()
                .map(member -> member.clientId() + "@" + member.host() + "["
                        + member.assignment().topicPartitions().stream().map(TopicPartition::toString).sorted()
                        .collect(Collectors.joining(",")) + "]")
                .sorted().collect(Collectors.joining(" "));
        return found.state() + " " + found.partitionAssignor() + " coordinator=" + found.coordinator().id() + " " + members;
    }

    static String offsets(String group, Collection<TopicPartition> wanted) throws Exception {
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec().topicPartitions(wanted);
        return inOrder(admin.listConsumerGroupOffsets(Map.of(group, spec)).all().get().get(group),
                found -> found == null ? "none" : "" + found.offset());
    }

    static Map<TopicPartition, OffsetAndMetadata> offset(String[] given) {
        TopicPartition where = new TopicPartition(given[1], Integer.parseInt(given[2]));
        return Map.of(where, new OffsetAndMetadata(Long.parseLong(given[3])));
    }

    /** As AKHQ does: by the commit of a consumer that is no member. */
    static void resetByConsumer(String[] given) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(given[0])) {
            consumer.commitSync(offset(given));
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties own = new Properties();
        own.putAll(settings);
        own.putAll(Map.of("enable.auto.commit", "false", "isolation.level", "read_committed",
                "default.api.timeout.ms", "15000"));
        if (group != null) {
            own.put("group.id", group);
        }
        return new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static String sorted(Collection<String> words) {
        return words.stream().sorted().collect(Collectors.joining(" "));
    }

    static <T> String inOrder(Map<TopicPartition, T> found, Function<T, String> shown) {
        Map<String, String> texts = new TreeMap<>();
        found.forEach((where, value) -> texts.put(where.toString(), shown.apply(value)));
        return texts.entrySet().stream().map(entry -> entry.getKey() + "=" + entry.getValue())
                .collect(Collectors.joining(" "));
    }
}
