INSERT INTO inbox_bytes SELECT generate_series(0, 15), 0;
CREATE FUNCTION count_inbox_bytes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
    IF EXISTS (SELECT FROM changed) THEN
        UPDATE inbox_bytes
        SET kept = kept + TG_ARGV[0]::integer * (SELECT sum(size) FROM changed)
        WHERE slot = pg_backend_pid() % 16;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER inbox_added AFTER INSERT ON inbox
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_inbox_bytes('1');
CREATE TRIGGER inbox_deleted AFTER DELETE ON inbox
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_inbox_bytes('-1');
