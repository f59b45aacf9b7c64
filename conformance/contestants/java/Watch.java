/** WatchService on the directory of the file; with "best", the file is also read when a second has passed. */
import java.io.IOException;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

import static java.nio.file.StandardWatchEventKinds.*;

public class Watch {
    static String shown = "";

    public static void main(String[] args) throws Exception {
        Path path = Path.of(args[0]);
        boolean isBest = args.length > 1 && args[1].equals("best");
        WatchService watcher = FileSystems.getDefault().newWatchService();
        path.getParent().register(watcher, ENTRY_CREATE, ENTRY_DELETE, ENTRY_MODIFY);
        show(path);
        while (true) {
            WatchKey key = isBest ? watcher.poll(1, TimeUnit.SECONDS) : watcher.take();
            if (key != null) {
                key.pollEvents();
                key.reset();
            }
            show(path);
        }
    }

    static void show(Path path) throws Exception {
        byte[] content;
        try {
            content = Files.readAllBytes(path);
        } catch (IOException notThere) {
            return;
        }
        String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        if (!digest.equals(shown)) System.out.println(shown = digest);
    }
}
