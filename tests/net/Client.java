import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/* Fetches a URL with the old client and with the new one. */
public class Client {
	public static void main(String[] args) throws Exception {
		try (var stream = new URL(args[0]).openStream()) {
			System.out.print(new String(stream.readAllBytes()));
		}
		var request = HttpRequest.newBuilder(URI.create(args[0])).build();
		var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
		System.out.print(answer.version() + " " + answer.body());
	}
}
