// Frames as Kafka's own classes write them, with the values that they read, one JSON object a line.
//
//     java -cp 'jars/*' Recorder.java < bodies
//
// A line of the input is `API-KEY VERSION request|response BODY`, with the body in hexadecimal.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

public class Recorder {
    static final int CORRELATION_ID = 7;

    static byte[] bytes(ApiMessage message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return found;
    }

    static JsonNode values(ApiMessage message, short version) throws Exception {
        return (JsonNode) Class.forName(message.getClass().getName() + "JsonConverter")
                .getMethod("write", message.getClass(), short.class)
                .invoke(null, message, version);
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            short key = Short.parseShort(words[0]);
            short version = Short.parseShort(words[1]);
            boolean asks = words[2].equals("request");
            ApiMessageType api = ApiMessageType.fromApiKey(key);
            ApiMessage message = asks ? api.newRequest() : api.newResponse();
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            message.read(new ByteBufferAccessor(body), version);
            if (body.hasRemaining()) {
                throw new IllegalStateException(api + " " + version + ": " + body.remaining() + " bytes are left");
            }
            byte[] header = asks
                    ? bytes(new RequestHeaderData().setRequestApiKey(key).setRequestApiVersion(version)
                            .setCorrelationId(CORRELATION_ID).setClientId("recorder"), api.requestHeaderVersion(version))
                    : bytes(new ResponseHeaderData().setCorrelationId(CORRELATION_ID), api.responseHeaderVersion(version));
            ObjectNode found = json.createObjectNode();
            found.put("key", key).put("version", version).put("kind", words[2]);
            found.put("frame", HexFormat.of().formatHex(header) + HexFormat.of().formatHex(bytes(message, version)));
            found.set("values", values(message, version));
            System.out.println(json.writeValueAsString(found));
        }
    }
}
