INSERT INTO inbox_bytes VALUES (0, 0);
CREATE TRIGGER inbox_added AFTER INSERT ON inbox BEGIN
    UPDATE inbox_bytes SET kept = kept + NEW.size;
END;
CREATE TRIGGER inbox_deleted AFTER DELETE ON inbox BEGIN
    UPDATE inbox_bytes SET kept = kept - OLD.size;
END;
