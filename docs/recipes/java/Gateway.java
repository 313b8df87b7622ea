import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;

final class Gateway implements AutoCloseable {
    private static final Pattern URL = Pattern.compile("\"url\": \"([^\"]+)\"");
    private final HttpClient client = HttpClient.newHttpClient();
    private final Process process;
    final String url;

    Gateway(String... settings) throws IOException {
        var command = new ArrayList<>(
            List.of("sandbox-sim", "serve", "--json", "--port", "0", "--store", "memory:"));
        for (var setting : settings) {
            command.addAll(List.of("--set", setting));
        }
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        var line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        var found = URL.matcher(line == null ? "" : line);
        if (!found.find()) {
            throw new IOException("the gateway did not start");
        }
        url = found.group(1);
    }

    /** A request of the gateway's own interface. */
    String pay(String path, String body) throws IOException, InterruptedException {
        return send("POST", path, body);
    }

    /** A request of the control API: clock, overrides, faults, callbacks … */
    String control(String method, String path, String body) throws IOException, InterruptedException {
        return send(method, "/_sandbox/" + path, body);
    }

    private String send(String method, String path, String body)
            throws IOException, InterruptedException {
        var credentials = Base64.getEncoder().encodeToString("sandbox_key:sandbox_secret".getBytes());
        var request = HttpRequest.newBuilder(URI.create(url + path))
            .header("Authorization", "Basic " + credentials)
            .method(method, BodyPublishers.ofString(body))
            .build();
        return client.send(request, BodyHandlers.ofString()).body();
    }

    @Override
    public void close() {
        process.destroy();
    }
}
