-- What converts the copies of two tables of before version 13 that snapshots may still have.

-- >> postings
INSERT INTO transfers
    (mode, kind, debit, credit, amount, reason, subject, at, service_id, wallet)
SELECT 'S', 'posted',
    CASE WHEN amount LIKE '-%' THEN 'service/' || service_id || '/' || account || '/' || CASE
        account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END ELSE CASE WHEN
        account IN ('sms', 'airtime') OR reason = 'opening' THEN 'issued/' || CASE account WHEN
        'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END ELSE
        'network/sandbox/clearing/GHS' END END,
    CASE WHEN amount LIKE '-%' THEN CASE WHEN account IN ('sms', 'airtime') OR reason = 'opening'
        THEN 'issued/' || CASE account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE
        'GHS' END ELSE 'network/sandbox/clearing/GHS' END ELSE 'service/' || service_id || '/' ||
        account || '/' || CASE account WHEN 'sms' THEN 'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE
        'GHS' END END,
    CASE WHEN amount LIKE '-%' THEN substr(amount, 2) ELSE amount END,
    reason, subject, at + {shift}, service_id, account
FROM {source} ORDER BY number;

-- >> balances
INSERT INTO wallets (mode, name, service_id, available, pending, updated_at)
SELECT 'S', 'service/' || service_id || '/' || account || '/' || CASE account WHEN 'sms' THEN
    'SMS' WHEN 'airtime' THEN 'AIRTIME' ELSE 'GHS' END, service_id, amount, '0', updated_at +
    {shift} FROM {source};
